//! Explains why the kernel refuses a BPF program.

use std::error::Error as StdError;
use std::io;
use std::path::Path;

/// Returns the reason why a program could not be loaded or attached, in words.
pub fn reason<'a>(error: &'a (dyn StdError + 'static)) -> String {
    let causes = || std::iter::successors(Some(error), |error: &&'a (dyn StdError + 'static)| (*error).source());
    let code = causes().find_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error());
    match code {
        _ if !Path::new("/sys/kernel/btf/vmlinux").exists() => {
            "this kernel has no type information (CONFIG_DEBUG_INFO_BTF)".to_owned()
        }
        Some(libc::EPERM | libc::EACCES) => "BPF needs root, or CAP_BPF and CAP_PERFMON".to_owned(),
        _ => {
            let causes: Vec<String> = causes().map(|error| error.to_string()).collect();
            let what = causes.join(": ").lines().next().unwrap_or_default().to_owned();
            format!("this kernel rejects the BPF program: {what}")
        }
    }
}
