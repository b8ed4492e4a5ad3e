//! Java programs for each JDK that is installed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tempfile::TempDir;

use super::programs::sources;
use super::recording::record;
use super::{Outcome, command, directory};

/// `Transitions.java` as class files, in a folder.
pub struct Transitions(TempDir);

/// The methods that are compiled, as `-XX:CompileCommandFile` has them. The others of the program are interpreted.
const TO_COMPILE: &str = "quiet
compileonly Transitions$Compiled::*
dontinline Transitions*::*
compileonly java.lang.Object::clone
compileonly java.lang.Object::getClass
compileonly java.lang.String::intern
compileonly java.lang.Thread::currentThread
";

impl Transitions {
    pub fn compile() -> Self {
        let folder = directory();
        let mut javac = command("javac");
        javac.arg("-d").arg(folder.path()).args(["--release", "8"]).arg(sources().join("Transitions.java"));
        assert!(javac.status().unwrap().success());
        std::fs::write(folder.path().join("commands"), TO_COMPILE).unwrap();
        Self(folder)
    }

    /// Records the program for two seconds, at a rate at which many samples are between methods.
    pub fn record(&self, java: &str) -> Outcome {
        let classes = self.0.path().display().to_string();
        let commands = format!("-XX:CompileCommandFile={classes}/commands");
        record(["-v", "-F", "4999", "--", java, &commands, "-Xcomp", "-cp", &classes, "Transitions", "2"])
    }
}

/// Returns the `java` of each JDK in the system's folder of them, and that of the search path if there are none.
pub fn installed_javas() -> Vec<String> {
    let folders = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let javas: BTreeSet<PathBuf> =
        folders.filter_map(|folder| folder.path().join("bin/java").canonicalize().ok()).collect();
    if javas.is_empty() {
        return vec!["java".to_owned()];
    }
    javas.into_iter().map(|java| java.display().to_string()).collect()
}
