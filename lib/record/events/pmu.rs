//! Events that the kernel describes in its file systems: those of a performance monitoring unit, and tracepoints.

use std::fs;
use std::io;
use std::path::Path;

use perf_event_open::event::dp::DynamicPmu;

use crate::Error;

/// Where the units stand.
pub const DEVICES: &str = "/sys/bus/event_source/devices";

/// Where tracepoints may stand.
const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The event that a unit makes of terms such as `event=0x3c,umask=1`, or of the name of one that it knows.
///
/// # Errors
/// [`Error::System`] if the machine has no such unit, [`Error::Invalid`] if the unit has no such term.
pub fn event(devices: &Path, unit: &str, terms: &str) -> Result<DynamicPmu, Error> {
    let folder = devices.join(unit);
    let ty = fs::read_to_string(folder.join("type")).ok().filter(|_| !unit.is_empty() && !unit.contains('.'));
    let ty = ty.and_then(|ty| ty.trim().parse().ok());
    let Some(ty) = ty else {
        return Err(Error::System(format!("this machine has no {unit} to count with; it has {}", names(devices))));
    };
    let mut event = DynamicPmu { ty, config: 0, config1: 0, config2: 0, config3: 0 };
    for term in terms.split(',') {
        let (name, value) = term.split_once('=').unwrap_or((term, ""));
        let known = format!("it has {}", names(&folder.join(if value.is_empty() { "events" } else { "format" })));
        let wrong = || Error::Invalid(format!("{unit} does not know {term}; {known}"));
        if name.contains(['/', '.']) {
            return Err(wrong());
        }
        // The name of an event stands for terms.
        match fs::read_to_string(folder.join("events").join(name)) {
            Ok(inner) if value.is_empty() => {
                inner.trim().split(',').try_for_each(|term| set(&mut event, &folder, term)).ok_or_else(wrong)?;
            }
            _ => set(&mut event, &folder, term).ok_or_else(wrong)?,
        }
    }
    Ok(event)
}

/// Sets a term's bits as the unit's format says: `config:0-7,32`.
fn set(event: &mut DynamicPmu, folder: &Path, term: &str) -> Option<()> {
    let (name, value) = term.split_once('=').unwrap_or((term, "1"));
    let mut value = number(value)?;
    let format = match name {
        "config" | "config1" | "config2" => format!("{name}:0-63"),
        _ => fs::read_to_string(folder.join("format").join(name)).ok()?,
    };
    let (word, bits) = format.trim().split_once(':')?;
    let word = match word {
        "config" => &mut event.config,
        "config1" => &mut event.config1,
        "config2" => &mut event.config2,
        "config3" => &mut event.config3,
        _ => return None,
    };
    for range in bits.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        let width = last.checked_sub(first).filter(|_| last < 64)? + 1;
        let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        *word |= (value & mask) << first;
        value = if width == 64 { 0 } else { value >> width };
    }
    (value == 0).then_some(())
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The type of the events of a unit, if there is such a unit.
pub fn unit(name: &str) -> Option<u32> {
    fs::read_to_string(Path::new(DEVICES).join(name).join("type")).ok()?.trim().parse().ok()
}

fn names(folder: &Path) -> String {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The number of a tracepoint.
///
/// # Errors
/// [`Error::Usage`] if no tracepoint has that name, [`Error::System`] if tracefs cannot be read.
pub fn tracepoint(subsystem: &str, event: &str) -> Result<u64, Error> {
    let id = tracepoint_file(subsystem, event, "id")?;
    id.trim().parse().map_err(|_| Error::System(format!("tracepoint {subsystem}:{event} has no number")))
}

/// A file that describes a tracepoint.
///
/// # Errors
/// [`Error::Usage`] if no tracepoint has that name, [`Error::System`] if tracefs cannot be read.
pub fn tracepoint_file(subsystem: &str, event: &str, file: &str) -> Result<String, Error> {
    let name = format!("{subsystem}:{event}");
    if [subsystem, event].iter().any(|part| part.is_empty() || part.contains(['/', '.'])) {
        return Err(Error::Usage(format!("no event is called {name}")));
    }
    let mut refused = false;
    for folder in TRACING.map(|folder| Path::new(folder).join("events")) {
        match fs::read_to_string(folder.join(subsystem).join(event).join(file)) {
            Ok(text) => return Ok(text),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = true,
            Err(_) => {}
        }
    }
    let is_mounted = TRACING.iter().any(|folder| Path::new(folder).join("events").exists());
    Err(match (refused, is_mounted) {
        (true, _) => Error::System(format!("only root may look up tracepoints such as {name}")),
        (false, true) => Error::Usage(format!("this kernel has no tracepoint {name}")),
        (false, false) => Error::System(format!(
            "tracepoints such as {name} need tracefs: sudo mount -t tracefs tracefs /sys/kernel/tracing"
        )),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn a_unit_says_how_its_events_are_written() {
        let devices = tempfile::tempdir().unwrap();
        let unit = devices.path().join("cpu");
        for (name, text) in [
            ("type", "4\n"),
            ("format/event", "config:0-7\n"),
            ("format/umask", "config:8-15\n"),
            ("format/split", "config1:0-3,60\n"),
            ("format/any", "config:21\n"),
            ("events/cache-misses", "event=0x2e,umask=0x41\n"),
        ] {
            let path = unit.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let event = |unit: &str, terms: &str| super::event(devices.path(), unit, terms);
        let words = |terms: &str| event("cpu", terms).map(|event| (event.ty, event.config, event.config1)).unwrap();
        assert_eq!(words("event=0x3c,umask=1"), (4, 0x13c, 0));
        assert_eq!(words("cache-misses,any"), (4, 0x20412e, 0));
        assert_eq!(words("split=17"), (4, 0, 1 << 60 | 1));
        assert_eq!(words("config=0xffffffffffffffff"), (4, u64::MAX, 0));
        let refusal = |unit, terms| event(unit, terms).unwrap_err().to_string();
        assert!(refusal("cpu", "event=0x100").contains("cpu does not know event=0x100"));
        assert!(refusal("cpu", "evnt=1").ends_with("it has any, event, split, umask"));
        assert!(refusal("gpu", "event=1").ends_with("this machine has no gpu to count with; it has cpu"));
        assert!(event("../devices/cpu", "event=1").is_err());
    }
}
