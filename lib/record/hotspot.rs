//! The settings of Java programs that run on HotSpot.

use std::fs;

/// True if a process runs on HotSpot with `-XX:+PreserveFramePointer`: then all code that it generates keeps frame
/// pointers.
///
/// Options in files (`@FILE`, `-XX:Flags`, `-XX:VMOptionsFile`) are not read.
pub fn keeps_frame_pointers(pid: u32) -> bool {
    is_kept(&read_proc(pid, "cmdline"), &read_proc(pid, "environ"))
        && read_proc(pid, "maps").split(|byte| *byte == b'\n').any(|line| line.ends_with(b"/libjvm.so"))
}

/// Reads a file of a process; empty if it cannot be read.
fn read_proc(pid: u32, name: &str) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default()
}

/// True if HotSpot runs with `-XX:+PreserveFramePointer`. It reads options in this order, and the last one wins.
fn is_kept(cmdline: &[u8], environ: &[u8]) -> bool {
    let options = variable_options(environ, b"JAVA_TOOL_OPTIONS=")
        .chain(variable_options(environ, b"JDK_JAVA_OPTIONS="))
        .chain(vm_options(cmdline))
        .chain(variable_options(environ, b"_JAVA_OPTIONS="));
    let values = options.filter_map(|option| match option {
        b"-XX:+PreserveFramePointer" => Some(true),
        b"-XX:-PreserveFramePointer" => Some(false),
        _ => None,
    });
    values.last().unwrap_or_default()
}

/// Returns the options in a variable of the environment, whose `name` ends in `=`.
fn variable_options<'a>(environ: &'a [u8], name: &[u8]) -> impl Iterator<Item = &'a [u8]> {
    let value = environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(name));
    value.unwrap_or_default().split(u8::is_ascii_whitespace)
}

/// Returns the arguments of `java` up to the program that it runs.
fn vm_options(cmdline: &[u8]) -> impl Iterator<Item = &[u8]> {
    /// Options whose value is the next argument.
    const WITH_VALUE: [&[u8]; 13] = [
        b"-cp",
        b"-classpath",
        b"--class-path",
        b"-p",
        b"--module-path",
        b"--upgrade-module-path",
        b"--add-modules",
        b"--add-reads",
        b"--add-exports",
        b"--add-opens",
        b"--limit-modules",
        b"--patch-module",
        b"--enable-native-access",
    ];
    let mut is_value = false;
    cmdline.split(|byte| *byte == 0).skip(1).take_while(move |argument| {
        let is_option = is_value || argument.starts_with(b"-") && !matches!(*argument, b"-jar" | b"-m" | b"--module");
        is_value = !is_value && WITH_VALUE.contains(argument);
        // `@FILE` contains options.
        is_option || argument.starts_with(b"@")
    })
}

#[cfg(test)]
mod tests {
    use super::is_kept;

    const ON: &str = "-XX:+PreserveFramePointer";
    const OFF: &str = "-XX:-PreserveFramePointer";

    fn is_kept_by(arguments: &[&str], environ: &str) -> bool {
        is_kept(arguments.join("\0").as_bytes(), environ.as_bytes())
    }

    #[test]
    fn reads_the_options_of_the_virtual_machine_only() {
        assert!(is_kept_by(&["java", "-cp", "a:b", "@options", ON, "Main"], ""));
        assert!(is_kept_by(&["java", ON, "-jar", "a.jar"], ""));
        for arguments in [&["java", "Main", ON][..], &["java", "-jar", "a.jar", ON], &["java", "-m", "a/b", ON], &[ON]]
        {
            assert!(!is_kept_by(arguments, ""), "{arguments:?}");
        }
    }

    #[test]
    fn the_last_option_wins() {
        assert!(!is_kept_by(&["java", ON, OFF, "Main"], ""));
        assert!(is_kept_by(&["java", "Main"], &format!("A=1\0JAVA_TOOL_OPTIONS=-Xmx1g {ON}\0B=2")));
        assert!(!is_kept_by(&["java", OFF, "Main"], &format!("JDK_JAVA_OPTIONS={ON}")));
        assert!(!is_kept_by(&["java", ON, "Main"], &format!("_JAVA_OPTIONS={OFF}")));
        assert!(!is_kept_by(&["java", "Main"], &format!("MY_JAVA_OPTIONS={ON}")));
    }
}
