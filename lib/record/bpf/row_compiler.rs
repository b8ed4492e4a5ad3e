//! Makes the rows of objects in a thread of its own.
//!
//! Those of a large library take 0.1 s of CPU time, and several times as long beside a busy target. The recorder must go on
//! meanwhile: to the stacks of a process that is not published, the program keeps more words than it has room for.

use std::sync::mpsc::{Receiver, Sender, channel};

use rustc_hash::FxHashMap;

use crate::parallel;
use crate::perf::objects::object::{Elf, ObjectId};
use crate::perf::unwind::rows::CompiledRows;

/// An object whose rows are to be made.
struct Job {
    number: u64,
    object: ObjectId,
    elf: Elf,
}

/// The rows of an object; `None` if it has none.
struct Finished {
    number: u64,
    object: ObjectId,
    rows: Option<CompiledRows>,
}

/// The rows of an object that were asked for.
pub(super) struct FinishedRows {
    pub object: ObjectId,
    /// `None` if the object has none.
    pub rows: Option<CompiledRows>,
    /// True if stacks cannot be taken without them.
    pub is_required: bool,
}

/// The two ends of the channels to and from the thread.
struct Worker {
    jobs: Sender<Job>,
    finished: Receiver<Finished>,
}

/// An object whose rows are being made.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// The number of the job: an object's number may be given to another one.
    number: u64,
    is_required: bool,
}

/// Makes rows in a thread that begins with the first object.
#[derive(Default)]
pub(super) struct RowCompiler {
    worker: Option<Worker>,
    pending: FxHashMap<ObjectId, Pending>,
    last_number: u64,
}

impl RowCompiler {
    /// True if the rows of some objects are being made.
    pub fn is_busy(&self) -> bool {
        !self.pending.is_empty()
    }

    /// True if the rows of an object are being made.
    pub fn is_pending(&self, object: ObjectId) -> bool {
        self.pending.contains_key(&object)
    }

    /// Forgets an object, whose number may be given to another.
    pub fn forget(&mut self, object: ObjectId) {
        self.pending.remove(&object);
    }

    /// Begins to make the rows of an object. They are required if stacks cannot be taken without them.
    pub fn start(&mut self, object: ObjectId, elf: &Elf, is_required: bool) {
        if let Some(pending) = self.pending.get_mut(&object) {
            pending.is_required |= is_required;
            return;
        }
        self.last_number += 1;
        let number = self.last_number;
        let worker = self.worker.get_or_insert_with(Worker::start);
        if worker.jobs.send(Job { number, object, elf: elf.clone() }).is_ok() {
            self.pending.insert(object, Pending { number, is_required });
        }
    }

    /// Returns the next rows that are made.
    pub fn take_finished(&mut self) -> Option<FinishedRows> {
        while let Ok(finished) = self.worker.as_ref()?.finished.try_recv() {
            if let Some(finished) = self.accept(finished) {
                return Some(finished);
            }
        }
        None
    }

    /// Waits for the next rows. `None` if no rows are being made.
    pub fn wait_for_next(&mut self) -> Option<FinishedRows> {
        while self.is_busy() {
            match self.worker.as_ref()?.finished.recv() {
                Ok(finished) => match self.accept(finished) {
                    Some(finished) => return Some(finished),
                    None => continue,
                },
                Err(_) => self.pending.clear(),
            }
        }
        None
    }

    /// Returns the rows of an object, unless it was forgotten since they were asked for.
    fn accept(&mut self, finished: Finished) -> Option<FinishedRows> {
        let Finished { number, object, rows } = finished;
        let pending = self.pending.get(&object).copied().filter(|pending| pending.number == number)?;
        self.pending.remove(&object);
        Some(FinishedRows { object, rows, is_required: pending.is_required })
    }
}

impl Worker {
    /// Starts the thread. Without one, no rows are made, and stacks are unwound from words.
    fn start() -> Self {
        let (jobs, received) = channel::<Job>();
        let (sender, finished) = channel();
        let _ = parallel::spawn_with((received, sender), |(jobs, finished)| {
            for Job { number, object, elf } in jobs {
                let rows = CompiledRows::compile(&elf);
                if finished.send(Finished { number, object, rows }).is_err() {
                    break;
                }
            }
        });
        Self { jobs, finished }
    }
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use std::path::Path;

    use super::{FinishedRows, RowCompiler};
    use crate::perf::objects::object::{Elf, Object, ObjectId};
    use crate::perf::recording::{Options, Recording};

    fn elf(recording: &Recording, object: ObjectId) -> &Elf {
        let Object::Elf(elf) = recording.objects.get(object) else { panic!("{object:?}") };
        elf
    }

    #[test]
    fn rows_are_those_of_the_object_that_has_the_number_now() {
        let mut recording = Recording::new(Options::default());
        let forgotten = recording.open_program(Path::new("/bin/sh"));
        let program = recording.open_program(&std::env::current_exe().unwrap());
        let mut compiler = RowCompiler::default();
        compiler.start(forgotten, elf(&recording, forgotten), false);
        compiler.forget(forgotten);
        compiler.start(program, elf(&recording, program), false);
        compiler.start(program, elf(&recording, program), true);
        assert!(compiler.is_pending(program) && !compiler.is_pending(forgotten));
        let FinishedRows { object, rows, is_required } = compiler.wait_for_next().unwrap();
        assert!(object == program && rows.is_some() && is_required);
        assert!(!compiler.is_busy() && compiler.take_finished().is_none() && compiler.wait_for_next().is_none());
    }
}
