//! A process that ends a run if the benchmark is killed, and so cannot end it itself.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

/// Reads a line when a run begins, with the ID of its process group, and an empty one when it ends. When the benchmark is
/// killed, the pipe ends within a run.
const SCRIPT: &str = "
trap '' HUP INT TERM
group=
while read -r line; do group=$line; done
[ -z \"$group\" ] || kill -s KILL -- \"-$group\"
";

/// A process that kills the process group of a run if this process is killed.
#[derive(Debug)]
pub struct Watcher(Option<Child>);

impl Watcher {
    /// Starts the process. Without one, a run goes on if this process is killed.
    pub fn start() -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        super::process::own_group(&mut command);
        Self(command.spawn().ok())
    }

    /// Notes that a process has begun a run, as the first one of its group.
    pub fn note_start(&self, pid: u32) {
        self.write(&format!("{pid}\n"));
    }

    /// Notes the end of the run.
    pub fn note_end(&self) {
        self.write("\n");
    }

    fn write(&self, line: &str) {
        if let Some(mut pipe) = self.0.as_ref().and_then(|child| child.stdin.as_ref()) {
            // If somebody has killed the process, there is none.
            let _ = pipe.write_all(line.as_bytes());
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}
