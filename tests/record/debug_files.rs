//! Debug information wherever it may stand: each kind of place tells the same as the compiler's own output does, and that
//! is what `llvm-addr2line -i` tells.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use fgkit::perf::event::Mmap;
use fgkit::perf::location::Location;
use fgkit::perf::objects::registry::Objects;
use fgkit::perf::symbols::frame::SymbolizeOptions;
use fgkit::perf::symbols::symbolize::{Symbolized, symbolize};
use fgkit::symbol_name::demangle::demangle;

use crate::folded::{Background, Folded, may_record};
use crate::programs::{copy_program, program};
use crate::support::{Outcome, directory, eventually, has, run_command, skip, tool};

/// Two units that have much in common, and much inlined.
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

/// How many addresses are asked for.
const ADDRESSES: u64 = 5000;

/// Runs a command in a folder.
fn outcome(folder: &Path, words: &str) -> Outcome {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).current_dir(folder);
    run_command(command, b"")
}

fn succeeds(folder: &Path, words: &str) -> bool {
    outcome(folder, words).status.success()
}

fn must(folder: &Path, words: &str) {
    outcome(folder, words).ok();
}

/// Compiles the program `app` with debug information in one piece or split.
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

/// The program with all its debug information, compiled once.
fn whole() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = directory();
        compile(folder.path(), "");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("debug_files");
        copy_program(folder.path().join("app"), &program);
        program
    });
    &PROGRAM
}

/// Addresses all over the code of a program.
fn addresses(program: &Path) -> Vec<u64> {
    use object::{Object as _, ObjectSection as _};
    let bytes = std::fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let text = file.section_by_name(".text").unwrap();
    assert!(text.size() > ADDRESSES);
    (0..ADDRESSES).map(|n| text.address() + n * text.size() / ADDRESSES).collect()
}

/// A frame: a function and `FILE:LINE`.
type Frame = (String, Option<String>);

/// What this project tells of addresses in a file as process `pid` sees it; root first.
fn told(path: &Path, pid: u32, addresses: &[u64]) -> (Vec<Vec<Frame>>, Vec<String>) {
    let mut objects = Objects::default();
    let path = path.to_str().unwrap().as_bytes();
    let object = objects.of_mapping(&Mmap {
        pid,
        start: 0,
        length: 1 << 30,
        offset: 0,
        inode: None,
        build_id: None,
        executable: true,
        path,
    });
    let locations: Vec<_> =
        addresses.iter().map(|address| Location { object, address: *address, ip: 0, since: 0 }).collect();
    let names =
        symbolize(&objects, &locations, &SymbolizeOptions { inline: true, lines: true, ..SymbolizeOptions::default() });
    ((0..addresses.len() as u32).map(|place| frames(&names, place)).collect(), names.remarks().to_vec())
}

fn frames(names: &Symbolized, place: u32) -> Vec<Frame> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    names.frames()[names.span(place)]
        .iter()
        .map(|frame| (text(&frame.name), frame.source.as_deref().map(text)))
        .collect()
}

/// What `llvm-addr2line` tells; root first.
fn oracle(path: &Path, addresses: &[u64]) -> Vec<Vec<Frame>> {
    let mut command = Command::new("llvm-addr2line");
    command.args(["-a", "-i", "-f", "-s", "-e"]).arg(path);
    let asked = addresses.iter().fold(String::new(), |text, address| format!("{text}{address:#x}\n"));
    let answer = run_command(command, asked.as_bytes()).ok().text();
    let mut told: Vec<Vec<Frame>> = Vec::new();
    let mut lines = answer.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            told.push(Vec::new());
            continue;
        }
        let name = String::from_utf8_lossy(&demangle(line.as_bytes())).into_owned();
        let source = lines.next().unwrap().split(" (").next().unwrap();
        let known = !source.starts_with("??") && !source.ends_with(":0") && !source.ends_with(":?");
        told.last_mut().unwrap().insert(0, (name, known.then(|| source.to_owned())));
    }
    told
}

/// The frames as both would tell them. The function that was called is named by its symbol here, which tells of parts that
/// compilers move away (`[clone .cold]`), and there by its debug information.
fn comparable(frames: &[Frame]) -> Vec<Frame> {
    // A stub, or what has no name at all.
    let is_unnamed = |name: &str| name == "??" || name.starts_with('[') || name.ends_with("@plt");
    let frames = frames.iter().filter(|(function, _)| !is_unnamed(function));
    let name = |name: &str| name.split(" [clone").next().unwrap().trim_end_matches(".cold").to_owned();
    frames.map(|(function, source)| (name(function), source.clone())).collect()
}

#[track_caller]
fn assert_same(kind: &str, told: &[Vec<Frame>], truth: &[Vec<Frame>], addresses: &[u64]) {
    assert_eq!(told.len(), truth.len());
    let differing: Vec<usize> =
        (0..told.len()).filter(|place| comparable(&told[*place]) != comparable(&truth[*place])).collect();
    if let Some(first) = differing.first() {
        let (told, truth, address) = (&told[*first], &truth[*first], addresses[*first]);
        panic!("{kind}: {} differ; the first, at {address:#x}:\n{told:#?}\n{truth:#?}", differing.len());
    }
}

/// Ways to lay debug information out, each from the program as it was compiled.
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
fn debug_information_is_found_wherever_it_stands() {
    if !["g++", "objcopy", "llvm-addr2line", "dwz"].into_iter().all(has) {
        return;
    }
    let folder = directory();
    must(folder.path(), &format!("cp {} app", whole().display()));
    let app = folder.path().join("app");
    let addresses = addresses(&app);
    let truth = oracle(&app, &addresses);
    let (plain, remarks) = told(&app, std::process::id(), &addresses);
    assert_eq!(remarks, [""; 0]);
    assert_same("as compiled", &plain, &truth, &addresses);
    let deepest = truth.iter().map(Vec::len).max().unwrap();
    let functions: BTreeSet<_> = truth.iter().flatten().map(|(function, _)| function).collect();
    assert!(deepest > 8 && functions.len() > 200, "too little is inlined: {deepest}, {}", functions.len());
    for (kind, commands) in LAYOUTS {
        let place = folder.path().join(kind);
        std::fs::create_dir(&place).unwrap();
        if !commands.iter().all(|words| succeeds(&place, words)) {
            skip(&format!("{kind} cannot be made here"));
            continue;
        }
        let (told, remarks) = told(&place.join("app"), std::process::id(), &addresses);
        assert_eq!(remarks, [""; 0], "{kind}");
        assert_same(kind, &told, &truth, &addresses);
    }
}

#[test]
fn split_debug_information_is_found() {
    if !["g++", "dwp", "llvm-addr2line"].into_iter().all(has) {
        return;
    }
    let folder = directory();
    // GNU's dwp packs no DWARF 5, and LLVM 14's does not end.
    for version in ["5", "4"] {
        compile(folder.path(), &format!("-gsplit-dwarf -gdwarf-{version}"));
        let app = folder.path().join("app");
        let addresses = addresses(&app);
        let (split, remarks) = told(&app, std::process::id(), &addresses);
        assert_eq!(remarks, [""; 0]);
        assert_same(version, &split, &oracle(&app, &addresses), &addresses);
    }
    let app = folder.path().join("app");
    let addresses = addresses(&app);
    let truth = oracle(&app, &addresses);
    must(folder.path(), "dwp -e app -o app.dwp");
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    must(folder.path(), "mv one.dwo two.dwo main.dwo elsewhere");
    let (packed, remarks) = told(&app, std::process::id(), &addresses);
    assert_eq!(remarks, [""; 0]);
    assert_same("packed", &packed, &truth, &addresses);
    must(folder.path(), "cp app elsewhere");
    assert_same("moved", &told(&elsewhere.join("app"), std::process::id(), &addresses).0, &truth, &addresses);
    must(folder.path(), "rm -r elsewhere app.dwp");
    let (_, remarks) = told(&app, std::process::id(), &addresses);
    assert!(remarks.len() == 1 && remarks[0].contains(".dwo is missing"), "{remarks:?}");
}

/// A process that lives in a folder as its root, until it is dropped.
fn inhabitant(folder: &Path) -> Option<Background> {
    std::fs::write(folder.join("wait.c"), "#include <unistd.h>\nint main() { return pause(); }").unwrap();
    if !has("gcc") || !succeeds(folder, "gcc -static -o wait wait.c") {
        return None;
    }
    let mut command = Command::new("chroot");
    let mut process = Background::start(command.arg(folder).arg("/wait"));
    let settled = eventually(|| {
        let root = std::fs::read_link(format!("/proc/{}/root", process.pid()));
        !process.runs() || root.is_ok_and(|root| root == folder)
    });
    (settled && process.runs()).then_some(process)
}

#[test]
fn debug_files_are_found_by_build_id_in_the_processes_own_folders() {
    if !["g++", "objcopy", "chroot"].into_iter().all(has) {
        return;
    }
    let folder = directory();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    let Some(process) = inhabitant(&root) else { return skip("no process can be given a root folder here") };
    let pid: u32 = process.pid().parse().unwrap();
    must(&root, &format!("cp {} app", whole().display()));
    let all = root.join("app");
    let (addresses, id) = (addresses(&all), build_id(&all));
    let (truth, _) = told(&all, std::process::id(), &addresses);
    let tree = PathBuf::from(format!("usr/lib/debug/.build-id/{}", &id[..2]));
    std::fs::create_dir_all(root.join(&tree)).unwrap();
    let debug_file = root.join(&tree).join(format!("{}.debug", &id[2..]));
    must(&root, "objcopy --only-keep-debug app app.debug");
    must(&root, "objcopy -S app stripped");
    let named = |path: &str| told(Path::new(path), pid, &addresses);
    assert!(named("/stripped").0.iter().flatten().all(|(name, _)| *name == "[stripped]"));
    std::fs::rename(root.join("app.debug"), &debug_file).unwrap();
    let (by_id, remarks) = named("/stripped");
    assert_eq!(remarks, [""; 0]);
    assert_same("build-id", &by_id, &truth, &addresses);
    // Another build's file is not believed.
    std::fs::copy(root.join("wait"), &debug_file).unwrap();
    let (_, remarks) = named("/stripped");
    assert!(remarks.len() == 1 && remarks[0].contains("is ignored: its build-id is not that of"), "{remarks:?}");
    must(&root, "objcopy -S --add-gnu-debuglink=wait app linked");
    std::fs::copy(root.join("app"), root.join("wait.new")).unwrap();
    std::fs::remove_file(&debug_file).unwrap();
    std::fs::rename(root.join("wait.new"), root.join("wait")).unwrap();
    let (_, remarks) = named("/linked");
    assert!(remarks.len() == 1 && remarks[0].contains("is ignored: its checksum is not that of"), "{remarks:?}");
}

fn build_id(path: &Path) -> String {
    use object::Object as _;
    let bytes = std::fs::read(path).unwrap();
    let id = object::File::parse(&*bytes).unwrap().build_id().unwrap().unwrap().to_vec();
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn stubs_are_named_after_the_functions_they_call() {
    if !["g++", "objdump"].into_iter().all(has) {
        return;
    }
    let folder = directory();
    must(folder.path(), &format!("cp {} lazy", whole().display()));
    std::fs::write(folder.path().join("now.c"), "#include <stdlib.h>\nint main() { abs(rand()); exit(0); }").unwrap();
    must(folder.path(), "gcc -fcf-protection -Wl,-z,now -o now now.c");
    must(folder.path(), "gcc -fcf-protection -Wl,-z,ibtplt -Wl,-z,lazy -o guarded now.c");
    for program in ["lazy", "now", "guarded"] {
        let path = folder.path().join(program);
        let mut command = Command::new("objdump");
        command.args(["-d", "-C", "-j.plt", "-j.plt.sec", "-j.plt.got"]).arg(&path);
        let text = run_command(command, b"").text();
        let stub = |line: &str| {
            let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
            let name = name.strip_suffix("@plt")?.split('(').next()?.to_owned();
            Some((u64::from_str_radix(address, 16).ok()?, name))
        };
        let stubs: Vec<(u64, String)> = text.lines().filter_map(stub).collect();
        assert!(stubs.len() > 1, "{text}");
        let addresses: Vec<u64> = stubs.iter().map(|(address, _)| address + 5).collect();
        let (told, _) = told(&path, std::process::id(), &addresses);
        for ((address, name), frames) in stubs.iter().zip(told) {
            let [(told, _)] = &frames[..] else { panic!("{frames:?}") };
            let told = told.strip_suffix("@plt").unwrap_or_else(|| panic!("{address:#x} {name}: {told}"));
            assert_eq!(told.split('(').next().unwrap(), name, "{program} {address:#x}");
        }
    }
}

#[test]
fn debug_files_are_fetched_only_if_that_is_asked_for() {
    let (true, Some(busy)) = (may_record() && has("objcopy"), program("busy")) else { return };
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
    let recorded = |options: &[&str]| {
        let mut command = Command::new(tool("fg-record"));
        command.args(options).arg("--").arg(&stripped).arg("0.2").env("PATH", &path);
        Folded::of(&run_command(command, b"").ok())
    };
    assert_eq!(recorded(&[]).share(&["spin"]), 0.0);
    recorded(&["--debuginfod"]).assert_share(&["stripped", "main", "spin", "step"], 0.6);
}
