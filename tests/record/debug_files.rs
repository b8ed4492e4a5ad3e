//! Debug information in every place where it may be. Each gives the same frames as the compiler's own output, and those are
//! the frames of `llvm-addr2line -i`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fgkit::perf::event::Mmap;
use fgkit::perf::location::Location;
use fgkit::perf::objects::registry::Objects;
use fgkit::perf::symbols::frame::SymbolizeOptions;
use fgkit::perf::symbols::symbolize::{LocationFrames, symbolize};
use fgkit::symbol_name::demangle::demangle;

use crate::support::process::Background;
use crate::support::programs::{copy_program, program};
use crate::support::recording::{Profile, can_record};
use crate::support::{Outcome, command, directory, eventually, require, run_command, skip, tool};

/// A compilation unit with many inlined functions. It is compiled twice, so that two units have much in common.
const UNIT: &str = r"
    #include <algorithm>
    #include <map>
    #include <string>
    #include <unordered_map>
    #include <vector>
    namespace NAME {
    struct Item { std::string name; long weight; };
    static inline long weigh(const Item &item) { return item.weight * 3 + item.name.size(); }
    template <typename T> inline long sum(const std::vector<T> &items) {
        long total = 0;
        for (const auto &item : items) total += weigh(item);
        return total;
    }
    static std::vector<Item> items(long count) {
        std::map<std::string, long> sorted;
        std::unordered_map<long, std::string> names;
        for (long n = 0; n < count; n++) names[n] = std::to_string(n * 7919 % 1000);
        for (const auto &[number, name] : names) sorted[name + (name.size() > 2 ? name.substr(1) : name)] += number;
        std::vector<Item> items;
        for (const auto &[name, weight] : sorted) items.push_back({name, weight});
        std::sort(items.begin(), items.end(), [](const Item &a, const Item &b) { return weigh(a) < weigh(b); });
        std::stable_sort(items.begin(), items.end(), [](const auto &a, const auto &b) { return a.name < b.name; });
        items.erase(std::remove_if(items.begin(), items.end(), [](auto &a) { return a.weight % 5 == 0; }), items.end());
        return items;
    }
    long run(long count) { return sum(items(count)); }
    }
";

const MAIN: &str = "namespace one { long run(long); } namespace two { long run(long); }
    int main(int count, char **) { return one::run(count * 100) + two::run(count) == 42; }";

/// Number of addresses that are looked up.
const ADDRESSES: u64 = 5000;

/// Runs a command in a directory.
fn run_line(folder: &Path, line: &str) -> Outcome {
    let mut words = line.split_whitespace();
    let mut command = command(words.next().unwrap());
    command.args(words).current_dir(folder);
    run_command(command, b"")
}

fn succeeds(folder: &Path, line: &str) -> bool {
    run_line(folder, line).status.success()
}

fn must(folder: &Path, line: &str) {
    run_line(folder, line).ok();
}

/// Compiles the program `app` with debug information, split or not.
fn compile(folder: &Path, options: &str) {
    for unit in ["one", "two"] {
        std::fs::write(folder.join(unit).with_extension("cc"), UNIT.replace("NAME", unit)).unwrap();
    }
    std::fs::write(folder.join("main.cc"), MAIN).unwrap();
    for unit in ["one", "two", "main"] {
        must(folder, &format!("g++ -O2 -g -std=c++17 {options} -c {unit}.cc -o {unit}.o"));
    }
    must(folder, "g++ -Wl,--build-id -o app one.o two.o main.o");
}

/// Returns the program with all its debug information, compiled once.
fn app_with_debug_info() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = directory();
        compile(folder.path(), "");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("debug_files");
        copy_program(folder.path().join("app"), &program);
        program
    });
    &PROGRAM
}

/// Returns addresses spread over the code of a program.
fn code_addresses(program: &Path) -> Vec<u64> {
    use object::{Object as _, ObjectSection as _};
    let bytes = std::fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let text = file.section_by_name(".text").unwrap();
    assert!(text.size() > ADDRESSES);
    (0..ADDRESSES).map(|n| text.address() + n * text.size() / ADDRESSES).collect()
}

/// A frame: a function and `FILE:LINE`.
type Frame = (String, Option<String>);

/// Symbolizes addresses in a file as process `pid` sees it. Returns the frames of each address, root first, and the remarks.
fn symbolize_file(path: &Path, pid: u32, addresses: &[u64]) -> (Vec<Vec<Frame>>, Vec<String>) {
    let mut objects = Objects::default();
    let path = path.to_str().unwrap().as_bytes();
    let object = objects.open_mapping(&Mmap {
        pid,
        start: 0,
        length: 1 << 30,
        offset: 0,
        inode: None,
        build_id: None,
        executable: true,
        writable: false,
        path,
    });
    let locations: Vec<_> =
        addresses.iter().map(|address| Location { object, address: *address, ip: 0, loaded_at: 0 }).collect();
    let names =
        symbolize(&objects, &locations, &SymbolizeOptions { inline: true, lines: true, ..SymbolizeOptions::default() });
    ((0..addresses.len() as u32).map(|location| frames(&names, location)).collect(), names.warnings().to_vec())
}

fn frames(names: &LocationFrames, location: u32) -> Vec<Frame> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    names.frames()[names.range(location)]
        .iter()
        .map(|frame| (text(&frame.name), frame.source.as_deref().map(text)))
        .collect()
}

/// Returns the frames of each address by `llvm-addr2line`, root first.
fn addr2line_frames(path: &Path, addresses: &[u64]) -> Vec<Vec<Frame>> {
    let mut addr2line = command("llvm-addr2line");
    addr2line.args(["-a", "-i", "-f", "-s", "-e"]).arg(path);
    let queries = addresses.iter().fold(String::new(), |text, address| format!("{text}{address:#x}\n"));
    let answers = run_command(addr2line, queries.as_bytes()).ok().text();
    let mut stacks: Vec<Vec<Frame>> = Vec::new();
    let mut lines = answers.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            stacks.push(Vec::new());
            continue;
        }
        let name = String::from_utf8_lossy(&demangle(line.as_bytes())).into_owned();
        let source = lines.next().unwrap().split(" (").next().unwrap();
        let is_known = !source.starts_with("??") && !source.ends_with(":0") && !source.ends_with(":?");
        stacks.last_mut().unwrap().insert(0, (name, is_known.then(|| source.to_owned())));
    }
    stacks
}

/// Returns the frames in a form in which both are comparable. We name the outermost function by its symbol, which shows
/// parts that the compiler moved (`[clone .cold]`). addr2line names it by its debug information.
fn comparable(frames: &[Frame]) -> Vec<Frame> {
    // A PLT stub, or no name.
    let is_unnamed = |name: &str| name == "??" || name.starts_with('[') || name.ends_with("@plt");
    let frames = frames.iter().filter(|(function, _)| !is_unnamed(function));
    let name = |name: &str| name.split(" [clone").next().unwrap().trim_end_matches(".cold").to_owned();
    frames.map(|(function, source)| (name(function), source.clone())).collect()
}

#[track_caller]
fn assert_same(kind: &str, actual: &[Vec<Frame>], expected: &[Vec<Frame>], addresses: &[u64]) {
    assert_eq!(actual.len(), expected.len());
    let differing: Vec<usize> =
        (0..actual.len()).filter(|index| comparable(&actual[*index]) != comparable(&expected[*index])).collect();
    if let Some(first) = differing.first() {
        let (actual, expected, address) = (&actual[*first], &expected[*first], addresses[*first]);
        panic!("{kind}: {} differ; the first, at {address:#x}:\n{actual:#?}\n{expected:#?}", differing.len());
    }
}

/// Ways to store debug information, each with the commands that make it from the compiled program.
const LAYOUTS: [(&str, &[&str]); 7] = [
    ("zlib", &["objcopy --compress-debug-sections=zlib ../app app"]),
    ("zdebug", &["objcopy --compress-debug-sections=zlib-gnu ../app app"]),
    ("zstd", &["objcopy --compress-debug-sections=zstd ../app app"]),
    (
        "debuglink",
        &["objcopy --only-keep-debug ../app app.debug", "objcopy -S --add-gnu-debuglink=app.debug ../app app"],
    ),
    (
        "debuglink, compressed",
        &[
            "mkdir .debug",
            "objcopy --only-keep-debug --compress-debug-sections=zlib ../app .debug/app",
            "objcopy -S --add-gnu-debuglink=.debug/app ../app app",
        ],
    ),
    ("strip -g", &["objcopy --only-keep-debug ../app it", "objcopy -g --add-gnu-debuglink=it ../app app"]),
    ("dwz", &["cp ../app app", "cp ../app other", "dwz -m shared -M shared app other"]),
];

#[test]
fn finds_debug_information_in_every_layout() {
    if !["g++", "objcopy", "llvm-addr2line", "dwz"].into_iter().all(require) {
        return;
    }
    let folder = directory();
    must(folder.path(), &format!("cp {} app", app_with_debug_info().display()));
    let app = folder.path().join("app");
    let addresses = code_addresses(&app);
    let expected = addr2line_frames(&app, &addresses);
    let (plain, remarks) = symbolize_file(&app, std::process::id(), &addresses);
    assert_eq!(remarks, [""; 0]);
    assert_same("as compiled", &plain, &expected, &addresses);
    let deepest = expected.iter().map(Vec::len).max().unwrap();
    let functions: BTreeSet<_> = expected.iter().flatten().map(|(function, _)| function).collect();
    assert!(deepest > 8 && functions.len() > 200, "too little is inlined: {deepest}, {}", functions.len());
    for (kind, commands) in LAYOUTS {
        let layout = folder.path().join(kind);
        std::fs::create_dir(&layout).unwrap();
        if !commands.iter().all(|line| succeeds(&layout, line)) {
            skip(&format!("{kind} cannot be made here"));
            continue;
        }
        let (frames, remarks) = symbolize_file(&layout.join("app"), std::process::id(), &addresses);
        assert_eq!(remarks, [""; 0], "{kind}");
        assert_same(kind, &frames, &expected, &addresses);
    }
}

#[test]
fn finds_split_debug_information() {
    if !["g++", "dwp", "llvm-addr2line"].into_iter().all(require) {
        return;
    }
    let folder = directory();
    // GNU's dwp does not support DWARF 5, and LLVM 14's does not terminate.
    for version in ["5", "4"] {
        compile(folder.path(), &format!("-gsplit-dwarf -gdwarf-{version}"));
        let app = folder.path().join("app");
        let addresses = code_addresses(&app);
        let (split, remarks) = symbolize_file(&app, std::process::id(), &addresses);
        assert_eq!(remarks, [""; 0]);
        assert_same(version, &split, &addr2line_frames(&app, &addresses), &addresses);
    }
    let app = folder.path().join("app");
    let addresses = code_addresses(&app);
    let expected = addr2line_frames(&app, &addresses);
    must(folder.path(), "dwp -e app -o app.dwp");
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    must(folder.path(), "mv one.dwo two.dwo main.dwo elsewhere");
    let (packed, remarks) = symbolize_file(&app, std::process::id(), &addresses);
    assert_eq!(remarks, [""; 0]);
    assert_same("packed", &packed, &expected, &addresses);
    must(folder.path(), "cp app elsewhere");
    let (moved, _) = symbolize_file(&elsewhere.join("app"), std::process::id(), &addresses);
    assert_same("moved", &moved, &expected, &addresses);
    must(folder.path(), "rm -r elsewhere app.dwp");
    let (_, remarks) = symbolize_file(&app, std::process::id(), &addresses);
    assert!(remarks.len() == 1 && remarks[0].contains(".dwo is missing"), "{remarks:?}");
}

/// Starts a process whose root is a directory.
fn start_chrooted(folder: &Path) -> Option<Background> {
    std::fs::write(folder.join("wait.c"), "#include <unistd.h>\nint main() { return pause(); }").unwrap();
    if !require("gcc") || !succeeds(folder, "gcc -static -o wait wait.c") {
        return None;
    }
    let mut process = Background::start(command("chroot").arg(folder).arg("/wait"));
    let is_settled = eventually(|| {
        let root = std::fs::read_link(format!("/proc/{}/root", process.pid()));
        !process.is_running() || root.is_ok_and(|root| root == folder)
    });
    (is_settled && process.is_running()).then_some(process)
}

#[test]
fn finds_debug_files_by_build_id_below_the_root_of_the_process() {
    if !["g++", "objcopy", "chroot"].into_iter().all(require) {
        return;
    }
    let folder = directory();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    let Some(process) = start_chrooted(&root) else { return skip("chroot is not permitted here") };
    let pid: u32 = process.pid().parse().unwrap();
    must(&root, &format!("cp {} app", app_with_debug_info().display()));
    let app = root.join("app");
    let (addresses, id) = (code_addresses(&app), build_id(&app));
    let (expected, _) = symbolize_file(&app, std::process::id(), &addresses);
    let tree = PathBuf::from(format!("usr/lib/debug/.build-id/{}", &id[..2]));
    std::fs::create_dir_all(root.join(&tree)).unwrap();
    let debug_file = root.join(&tree).join(format!("{}.debug", &id[2..]));
    must(&root, "objcopy --only-keep-debug app app.debug");
    must(&root, "objcopy -S app stripped");
    let symbolize = |path: &str| symbolize_file(Path::new(path), pid, &addresses);
    assert!(symbolize("/stripped").0.iter().flatten().all(|(name, _)| *name == "[stripped]"));
    std::fs::rename(root.join("app.debug"), &debug_file).unwrap();
    let (by_id, remarks) = symbolize("/stripped");
    assert_eq!(remarks, [""; 0]);
    assert_same("build-id", &by_id, &expected, &addresses);
    // The debug file of another build is ignored.
    std::fs::copy(root.join("wait"), &debug_file).unwrap();
    let (_, remarks) = symbolize("/stripped");
    assert!(remarks.len() == 1 && remarks[0].contains("is ignored: its build ID differs from that of"), "{remarks:?}");
    must(&root, "objcopy -S --add-gnu-debuglink=wait app linked");
    std::fs::copy(root.join("app"), root.join("wait.new")).unwrap();
    std::fs::remove_file(&debug_file).unwrap();
    std::fs::rename(root.join("wait.new"), root.join("wait")).unwrap();
    let (_, remarks) = symbolize("/linked");
    assert!(remarks.len() == 1 && remarks[0].contains("is ignored: its checksum differs from that of"), "{remarks:?}");
}

fn build_id(path: &Path) -> String {
    use object::Object as _;
    let bytes = std::fs::read(path).unwrap();
    let id = object::File::parse(&*bytes).unwrap().build_id().unwrap().unwrap().to_vec();
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn names_plt_stubs_after_the_functions_they_call() {
    if !["g++", "objdump"].into_iter().all(require) {
        return;
    }
    let folder = directory();
    must(folder.path(), &format!("cp {} lazy", app_with_debug_info().display()));
    std::fs::write(folder.path().join("now.c"), "#include <stdlib.h>\nint main() { abs(rand()); exit(0); }").unwrap();
    must(folder.path(), "gcc -fcf-protection -Wl,-z,now -o now now.c");
    must(folder.path(), "gcc -fcf-protection -Wl,-z,ibtplt -Wl,-z,lazy -o guarded now.c");
    for program in ["lazy", "now", "guarded"] {
        let path = folder.path().join(program);
        let mut objdump = command("objdump");
        objdump.args(["-d", "-C", "-j.plt", "-j.plt.sec", "-j.plt.got"]).arg(&path);
        let text = run_command(objdump, b"").text();
        let parse_stub = |line: &str| {
            let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
            let name = name.strip_suffix("@plt")?.split('(').next()?.to_owned();
            Some((u64::from_str_radix(address, 16).ok()?, name))
        };
        let stubs: Vec<(u64, String)> = text.lines().filter_map(parse_stub).collect();
        assert!(stubs.len() > 1, "{text}");
        let addresses: Vec<u64> = stubs.iter().map(|(address, _)| address + 5).collect();
        let (stacks, _) = symbolize_file(&path, std::process::id(), &addresses);
        for ((address, name), frames) in stubs.iter().zip(stacks) {
            let [(actual, _)] = &frames[..] else { panic!("{frames:?}") };
            let actual = actual.strip_suffix("@plt").unwrap_or_else(|| panic!("{address:#x} {name}: {actual}"));
            assert_eq!(actual.split('(').next().unwrap(), name, "{program} {address:#x}");
        }
    }
}

#[test]
fn fetches_debug_files_with_debuginfod_only() {
    let (true, Some(busy)) = (can_record() && require("objcopy"), program("busy")) else { return };
    let folder = directory();
    must(folder.path(), &format!("objcopy --only-keep-debug {busy} fetched"));
    must(folder.path(), &format!("objcopy -S {busy} stripped"));
    let fetch = folder.path().join("debuginfod-find");
    let script = format!(
        "#!/bin/sh\ntest $1:$2 = debuginfo:{} && echo $0 | sed s/debuginfod-find/fetched/\n",
        build_id(busy.as_ref())
    );
    std::fs::write(&fetch, script).unwrap();
    must(folder.path(), "chmod +x debuginfod-find");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let stripped = folder.path().join("stripped");
    let record = |options: &[&str]| {
        let mut recorder = command(tool("fg-record"));
        recorder.args(options).arg("--").arg(&stripped).arg("0.2").env("PATH", &path);
        Profile::from_stdout(&run_command(recorder, b"").ok())
    };
    record(&[]).assert_lacks(&["spin"]);
    let profile = record(&["--debuginfod"]);
    profile.assert_contains(&["stripped", "main", "spin", "step"]);
    profile.assert_lacks(&["[stripped]"]);
}
