//! Recordings of other machines: `--symfs` and `--kallsyms`.

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};

use super::collapse;
use super::handmade::{Handmade, comm, kernel_mmap, kernel_sample, mmap, sample_at, sample_with_stack};
use crate::support::{command, directory, require, run, skip};

#[test]
fn finds_files_below_symfs() {
    let folder = directory();
    let program = std::env::current_exe().unwrap();
    let bytes = std::fs::read(&program).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let main = elf.symbols().find(|symbol| symbol.name() == Ok("main")).unwrap().address();
    let holds = |segment: &object::Segment<'_, '_>| main.wrapping_sub(segment.address()) < segment.size();
    let segment = elf.segments().find(holds).unwrap();
    let offset = main - segment.address() + segment.file_range().0;
    let mut file = Handmade::default();
    file.push(&comm(7, 7, 1, "app"));
    file.push(&mmap(7, 2, 1 << 32, 1 << 30, "/nowhere/at/all/app", None));
    file.push(&sample_at(7, 7, 10, 0, 1, (1 << 32) + offset));
    let path = file.write(folder.path());
    assert_eq!(collapse(&path, &[]).ok().text(), "app;[app] 1\n");
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("nowhere/at/all")).unwrap();
    std::os::unix::fs::symlink(&program, root.join("nowhere/at/all/app")).unwrap();
    let named = collapse(&path, &["--symfs", root.to_str().unwrap()]).ok();
    assert_eq!((named.text().as_str(), named.stderr.as_str()), ("app;main 1\n", ""));
    // The debug file of a stripped program, too.
    if !require("objcopy") {
        return;
    }
    let beside = root.join("nowhere/at/all");
    std::fs::create_dir(beside.join(".debug")).unwrap();
    std::fs::rename(beside.join("app"), beside.join(".debug/app.debug")).unwrap();
    let mut strip = command("objcopy");
    strip.args(["--strip-all", "--add-gnu-debuglink=.debug/app.debug", ".debug/app.debug", "app"]);
    assert!(strip.current_dir(&beside).status().unwrap().success());
    let named = collapse(&path, &["--symfs", root.to_str().unwrap(), "--no-inline"]).ok();
    assert_eq!((named.text().as_str(), named.stderr.as_str()), ("app;main 1\n", ""));
    // A symbol without a size in a data section names no code.
    let mut label = command("objcopy");
    label.args(["--strip-all", "--add-symbol", "table=.dynstr:0,local", ".debug/app.debug", "app"]);
    assert!(label.current_dir(&beside).status().unwrap().success());
    let named = collapse(&path, &["--symfs", root.to_str().unwrap(), "--no-inline"]).ok();
    assert_eq!(named.text(), "app;[app] 1\n");
}

/// Registers that both x86-64 and 64-bit ARM need to start unwinding.
const ALL_REGISTERS: u64 = (1 << 33) - 1;

/// True if stacks can be unwound on this architecture.
const CAN_UNWIND: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The other architecture on which stacks can be unwound: its name and its number in ELF files.
const FOREIGN: (&str, u16) = if cfg!(target_arch = "aarch64") { ("x86_64", 62) } else { ("aarch64", 183) };

#[test]
fn does_not_unwind_stacks_of_another_architecture() {
    if !CAN_UNWIND {
        return skip("stacks cannot be unwound on this architecture");
    }
    let mut file = Handmade::with_copied_stacks(ALL_REGISTERS);
    file.push(&comm(7, 7, 1, "app"));
    file.push(&mmap(7, 2, 0x10000, 0x10000, "/nowhere/at/all/app", None));
    // Every register points to the stack, and every word of that to code.
    file.push(&sample_with_stack(7, 10, 0x10100, &[0x7000_0000; 33], &[0x10200; 64]));
    file.architecture = Some(std::env::consts::ARCH);
    let native = run("fg-collapse", ["-"], &file.stream()).ok();
    assert!(!native.stderr.contains("recorded on"), "{}", native.stderr);
    file.architecture = Some(FOREIGN.0);
    let foreign = run("fg-collapse", ["-"], &file.stream()).ok();
    assert_eq!(foreign.text(), "app;[truncated];[app] 1\n");
    let expected = format!("recorded on {}: copied stacks are not unwound on {}", FOREIGN.0, std::env::consts::ARCH);
    assert!(foreign.stderr.contains(&expected), "{}", foreign.stderr);
    file.architecture = Some("riscv64");
    let unsupported = run("fg-collapse", ["-"], &file.stream()).ok();
    assert_eq!(unsupported.text(), foreign.text());
    let expected = "recorded on riscv64: copied stacks are unwound on x86_64 and aarch64 only";
    assert!(unsupported.stderr.contains(expected), "{}", unsupported.stderr);
}

#[test]
fn does_not_unwind_code_of_another_architecture() {
    if !CAN_UNWIND {
        return skip("stacks cannot be unwound on this architecture");
    }
    let folder = directory();
    let program = std::env::current_exe().unwrap();
    let mut bytes = std::fs::read(&program).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let main = elf.symbols().find(|symbol| symbol.name() == Ok("main")).unwrap().address();
    let holds = |segment: &object::Segment<'_, '_>| main.wrapping_sub(segment.address()) < segment.size();
    let segment = elf.segments().find(holds).unwrap();
    let address = (1 << 32) + main - segment.address() + segment.file_range().0;
    let mut file = Handmade::with_copied_stacks(ALL_REGISTERS);
    file.push(&comm(7, 7, 1, "app"));
    file.push(&mmap(7, 2, 1 << 32, 1 << 30, "/app", None));
    let mut registers = [0x7000_0000; 33];
    // The instruction pointer.
    registers[if cfg!(target_arch = "aarch64") { 32 } else { 8 }] = address;
    file.push(&sample_with_stack(7, 10, address, &registers, &[address + 1; 64]));
    let collapse = || run("fg-collapse", ["-", "--symfs", folder.path().to_str().unwrap()], &file.stream()).ok();
    std::fs::write(folder.path().join("app"), &bytes).unwrap();
    let native = collapse();
    assert!(native.text().contains("main;main"), "{native:?}");
    bytes[18..20].copy_from_slice(&FOREIGN.1.to_le_bytes());
    std::fs::write(folder.path().join("app"), &bytes).unwrap();
    let foreign = collapse();
    assert_eq!(foreign.text(), "app;[truncated];main 1\n");
    let expected = format!("recorded on {}: copied stacks are not unwound", FOREIGN.0);
    assert!(foreign.stderr.contains(&expected), "{}", foreign.stderr);
}

#[test]
fn fails_on_unreadable_kernel_symbols() {
    let folder = directory();
    let mut file = Handmade::default();
    file.push(&kernel_sample(7, 10, 0xffff_ffff_8100_0104));
    let outcome = collapse(&file.write(folder.path()), &["--kallsyms", "/nowhere/at/all"]);
    assert_eq!(outcome.code(), 1, "{outcome:?}");
    assert!(outcome.stderr.contains("/nowhere/at/all: No such file"), "{outcome:?}");
    std::fs::write(folder.path().join("text"), "no symbols at all\n").unwrap();
    let outcome = collapse(&file.write(folder.path()), &["--kallsyms", folder.path().join("text").to_str().unwrap()]);
    assert!(outcome.code() == 1 && outcome.stderr.contains("not a list of kernel symbols"), "{outcome:?}");
}

#[test]
fn names_kernel_functions_at_any_load_address() {
    let folder = directory();
    let kallsyms = folder.path().join("kallsyms");
    let symbols = "ffffffff81000000 T _text\nffffffff81000100 t do_it\nffffffff81000200 D table\n\
                   ffffffffc0000000 t mod_fn\t[mod]\n";
    std::fs::write(&kallsyms, symbols).unwrap();
    let fold = |shift: u64| {
        let mut file = Handmade::default();
        file.push(&kernel_mmap(0, "[kernel.kallsyms]_text", 0xffff_ffff_8100_0000 + shift));
        file.push(&comm(7, 7, 1, "app"));
        [0xffff_ffff_8100_0104 + shift, 0xffff_ffff_8100_0150 + shift, 0xffff_ffff_c000_0008]
            .iter()
            .for_each(|address| file.push(&kernel_sample(7, 10, *address)));
        let path = file.write(folder.path());
        let folded = collapse(&path, &["--kernel", "--kallsyms", kallsyms.to_str().unwrap()]).ok();
        assert_eq!(folded.stderr, "");
        folded.text()
    };
    assert_eq!(fold(0), "app;do_it_[k] 2\napp;mod_fn_[k] 1\n");
    // The kernel relocates each module on its own, so module addresses are not shifted: they belong to the kernel's
    // last symbol.
    assert!(fold(0x20_0000).starts_with("app;do_it_[k] "));
}

#[test]
fn text_behind_the_records_of_a_pipe_is_refused() {
    let mut file = Handmade::with_events(&["cycles"]);
    file.push(&comm(7, 7, 1, "app"));
    file.push(&sample_at(7, 7, 2, 0, 1, 0x4000));
    let alone = run("fg-collapse", ["-"], &file.stream()).ok();
    let outcome =
        run("fg-collapse", ["-"], &[file.stream(), b"goroutine 1 [running]:\nmain.main()\n".to_vec()].concat());
    assert_eq!((outcome.code(), outcome.text()), (1, alone.text()), "{outcome:?}");
    assert!(outcome.stderr.contains("data other than records follows after "), "{outcome:?}");
}
