//! Examples and sections of fg-record's man page.

use fgkit::cli::{Entries, Section};

/// Examples for each group of options.
pub const EXAMPLES: Entries = &[
    ("fg-record -- ./app | fg-svg > flame.svg", "Record a program from start to end, and draw it:"),
    ("fg-record -p 1234 -d 30 | fg-svg > flame.svg", "Record a running process for 30 seconds:"),
    (
        "sudo fg-record -p \"$(pgrep -o postgres)\" --subprocesses -- pgbench -T 30 | fg-svg > load.svg",
        "Record a server and its workers for as long as a load generator runs:",
    ),
    (
        "sudo fg-record -a -d 10 | fg-filter --focus kswapd",
        "Record the whole system for 10 seconds, and keep the stacks of kswapd:",
    ),
    (
        "sudo fg-record -F 4999 -e cpu-clock:u --user \"$USER\" -- ./app > user.folded",
        "As root, record the user code of a command that runs as yourself, at a higher frequency:",
    ),
    (
        "sudo fg-record -e syscalls:sys_exit_write --weight-field ret -- ./app",
        "Count the bytes that each stack writes:",
    ),
    ("sudo fg-record --off-cpu -p 1234 -d 1 | fg-report", "Show what a hanging process waits for:"),
    ("sudo fg-record --off-cpu -p 1234 -d 30 | fg-svg > waits.svg", "Show where a process waits, and for how long:"),
    (
        "sudo fg-record --off-cpu --wakers --waker-depth 3 -p 1234 -d 30 | fg-svg > wakers.svg",
        "Show which threads a process waits for, and what those wait for:",
    ),
    (
        "sudo fg-record --critical-path main -- ./app | fg-svg > critical.svg",
        "Show what a program spent its elapsed time on, whichever thread did it:",
    ),
    (
        "sudo fg-record --syscall-latency --over 5ms -p 1234 -d 30 | fg-svg > slow.svg",
        "Show the system calls that take longer than 5 ms, and how long:",
    ),
    ("sudo fg-record --wall -- ./app | fg-svg -c states > time.svg", "Show all time of a program, on and off the CPU:"),
    (
        "sudo fg-record --lines -p \"$(pgrep -o gunicorn)\" --subprocesses -d 30 | fg-svg > python.svg",
        "Show the functions and lines of a Python service, and the C functions that they call:",
    ),
    (
        "fg-record --call-graph fp --no-inline -- ./app > app.folded",
        "Record a program that is built with frame pointers, at low overhead:",
    ),
    (
        "fg-record --script -- ./app | fg-heatmap > map.html",
        "Print the samples with their times, and draw them over time:",
    ),
    (
        "sudo fg-record --wall -t 1240,1241 --ring 30s --when 'block > 500ms' -o 'stall-%t.folded'",
        "Each time one of two threads is blocked for more than 500 ms, write where they spent the last 30 seconds:",
    ),
    (
        "fg-record -p 1234 --interval 10m --max-overhead 2 -o 'app-%t.folded'",
        "Record continuously with at most 2% of a CPU, and write a file every ten minutes:",
    ),
];

const EVENTS_TEXT: &str = "Events have the names that perf-list(1) prints. The option -e takes a comma-separated list \
     and can be repeated.\n\n\
     Clocks and hardware events are sampled at the frequency of -F. Every page fault, context switch, function call \
     or other discrete event is sampled, unless -F or -c is given.\n\n\
     Each event has a profile of its own. To record several events, put `%e` into the file name, as in `-o \
     'app-%e.folded'`, or print all samples with --script.";

const EVENTS: &[(&str, &str)] = &[
    (
        "Hardware events",
        "`cycles`, `instructions`, `branches`, `branch-misses`, `cache-references`, `cache-misses`, \
         `bus-cycles`, `ref-cycles`, `stalled-cycles-frontend` and `stalled-cycles-backend`. Most virtual \
         machines provide none of them.",
    ),
    (
        "Cache events",
        "A cache (`L1-dcache`, `L1-icache`, `LLC`, `dTLB`, `iTLB`, `branch` or `node`) followed by `-loads`, \
         `-load-misses`, `-stores`, `-store-misses`, `-prefetches` or `-prefetch-misses`, such as \
         `L1-dcache-load-misses`.",
    ),
    (
        "Other PMU events",
        "`rNNN` is the raw event with the hexadecimal number NNN. `cpu/event=0xNN,umask=0xNN/` and `cpu/NAME/` use \
         the terms and names that the kernel lists under /sys/bus/event_source/devices.",
    ),
    (
        "Software events",
        "`cpu-clock`, `task-clock`, `page-faults`, `minor-faults`, `major-faults`, `context-switches`, \
         `cgroup-switches`, `cpu-migrations`, `alignment-faults` and `emulation-faults`.\n\nThe clocks cannot sample the kernel \
         where it disables interrupts, such as in part of each sleep and wake-up. With BPF, they sample too little of what a thread \
         does right after a short sleep, because their timers wake it: of its first 50 µs, about 5 % is missing at 997 Hz and \
         25 % at 4999 Hz. With --call-graph dwarf,65528, each thread has its own timer, without this error at 3000 Hz or less.",
    ),
    ("Tracepoints", "`SUBSYSTEM:EVENT`, such as `sched:sched_switch`. See also --weight-field."),
    (
        "Function calls",
        "`uprobe:PATH:SYMBOL` samples every call of a function in a program or library. PATH and SYMBOL may contain colons and \
         commas. SYMBOL is a name from the file's symbol table, a demangled name as in a flame graph, or \
         `0xADDRESS`.\n\n`uprobe:PATH:SYMBOL:N` weights each call by argument N, from 1 to 6. For example, `uprobe:/lib/x86_64-linux-gnu/libc.so.6:malloc:1` \
         adds up the bytes that are allocated. Arguments are read as unsigned: a negative int becomes a large number.\n\n\
         With BPF, the probe slows every process of the machine that calls the function, recorded or not.\n\nWithout BPF, \
         and with --call-graph fp, -F or -c above 1, calls in threads and processes that start during the recording are \
         missing; -a counts all.",
    ),
    (
        "Modifiers",
        "After a colon: `u` counts user code only, `k` counts the kernel only, and `p`, `pp` or `ppp` ask for \
         samples closer to the instruction that caused the event. `cycles:upp` combines them.",
    ),
];

const INTERPRETERS_TEXT: &str = "Script functions replace the frames of the interpreter, and code that a virtual machine \
     has compiled is shown with the names of its functions. The program needs no options and no restart. This requires BPF \
     (see PERMISSIONS) and the default --call-graph; --native-only turns it off.";

const INTERPRETERS: &[(&str, &str)] = &[
    (
        "Python 3.8 to 3.15",
        "`NAME (FILE)`, or `[python]` if the name cannot be read. Free-threaded builds are supported from 3.13 on. From 3.11 \
         on, the functions of greenlets are shown too, and from 3.12 on those of subinterpreters; such a stack is `[truncated]` where \
         the greenlet or the interpreter began. Tested with 3.8 to 3.15 and 3.13t.",
    ),
    (
        "Ruby 3.0 to 3.4",
        "`NAME (FILE)`, or `[ruby]`. Ruby functions that are written in C are native frames. The stack of a fiber \
         begins with the first function of the fiber. Methods that YJIT has compiled look like others. Tested with \
         3.1 and 3.3, also with YJIT.",
    ),
    (
        "PHP 7.4 to 8.4",
        "`NAME (FILE)`, or `[php]`. The file of a function that is written in C is `(php)`. Thread-safe builds (ZTS) \
         are not supported. The stack of a fiber begins with the first function of the fiber. Functions that the JIT \
         of opcache has compiled look like others. Tested with 8.2, also with JIT, and 8.4.",
    ),
    (
        "Java on HotSpot (OpenJDK)",
        "`PACKAGE.CLASS.METHOD`, or `[java]`, for interpreted, compiled and inlined methods. If the innermost frame is \
         compiled, its inlined methods are as exact as the compiler's records; for exact ones, run Java with \
         `-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints`. `[java]` also replaces the methods inlined into compiled \
         code that was freed before fg-record could read its records, and interpreted methods while the virtual machine \
         makes their frames of a compiled one. `[frozen]` replaces callers of a virtual \
         thread that the virtual machine keeps in its heap. Tested with JDK 8, 11, 17, 21 and 25.",
    ),
    (
        "JavaScript on V8 9.4 to 14.6 (Node.js 16 to 26)",
        "`NAME (FILE)`, or `[v8]`, for interpreted, compiled and inlined functions, also in workers. The file of V8's own \
         functions is `(v8)`. V8 does not keep the lines of baseline code, and wrong ones of code that Maglev has compiled: \
         such frames have none with --lines. `[v8]` also \
         replaces the functions inlined into compiled code that was freed before fg-record could read its records. Builds \
         with compressed pointers are not supported. Tested with Node.js 16, 18, 20, 22, 24, 25 and 26.",
    ),
];

const SUMMARY_TEXT: &str = "At the end, standard error says how many samples were taken, and which part of the CPU time of the \
     recorded processes they represent. The CPU time is the kernel's, and does not depend on samples. If the part is low, a line \
     says why. It also says how many samples were lost and how many stacks are cut, which `[lost]` and `[truncated]` show in the \
     profile.\n\nWith BPF, a stack is taken while its thread waits. Samples of clocks that fall to this time are left out, so \
     that what calls deeply has no more than its share. The summary says what it took, from 1 % of the CPU time on, and advises a \
     lower rate from 10 % on. Kernels that account for interrupts separately do not count it as CPU time of the processes.";

const PERMISSIONS: &[(&str, &str)] = &[
    ("3 or more", "Nothing, on kernels such as those of Debian and Ubuntu; elsewhere the same as 2."),
    ("2 or less", "Commands and your own processes."),
    (
        "1 or less",
        "Also kernel frames, kernel events, --off-cpu, --wall and --latency. Above 1, kernel frames are left out.",
    ),
    ("0 or less", "Also -a and --cgroup."),
];

/// Returns the sections that describe events, interpreters and permissions.
pub fn sections() -> Vec<Section> {
    vec![
        Section { heading: "EVENTS", text: EVENTS_TEXT, entries: EVENTS.to_vec() },
        Section {
            heading: "INTERPRETERS AND VIRTUAL MACHINES",
            text: INTERPRETERS_TEXT,
            entries: INTERPRETERS.to_vec(),
        },
        Section { heading: "SUMMARY", text: SUMMARY_TEXT, entries: Vec::new() },
        Section {
            heading: "PERMISSIONS",
            text: "Options that require BPF, other than --bpf, need all of this: root, or CAP_BPF and CAP_PERFMON; \
                   the PID namespace of the host (start a container with docker run --pid=host); x86-64; and Linux \
                   6.1 or later. For everything else, CAP_PERFMON is enough, except that tracepoints also need access \
                   to /sys/kernel/tracing, which normally only root has.\n\nOther users cannot record function calls \
                   (`uprobe:`). The sysctl kernel.perf_event_paranoid decides what else they can record:",
            entries: PERMISSIONS.to_vec(),
        },
    ]
}
