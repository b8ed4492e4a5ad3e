//! Runs cases in Firefox, which prints no document: the page sends the result to a port of the test.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use crate::browser::ColorScheme;
use crate::support::{command, eventually, is_installed, skip};

/// Returns true if the cases run in Firefox.
pub fn is_chosen() -> bool {
    std::env::var_os("FG_BROWSER").is_some_and(|browser| browser == "firefox")
}

/// A port to which a page sends its result.
pub struct Listener {
    listener: TcpListener,
    /// The address for the page.
    pub address: String,
}

impl Listener {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        Self { listener, address }
    }

    /// Returns the body of the request, if one has come.
    fn receive(&self) -> Option<String> {
        let (mut stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).unwrap();
        let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let length = stream.read(&mut buffer).unwrap();
            request.extend_from_slice(&buffer[..length]);
            let text = String::from_utf8_lossy(&request);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let head = head.to_ascii_lowercase();
                let (_, rest) = head.split_once("content-length:").unwrap();
                let expected: usize = rest.lines().next().unwrap().trim().parse().unwrap();
                if body.len() >= expected || length == 0 {
                    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
                    return Some(body.to_owned());
                }
            }
            assert!(length > 0, "the request ends early");
        }
    }
}

/// Opens an address and returns the result that its page sends, or `None` if there is no Firefox.
#[track_caller]
pub fn visit(listener: &Listener, color_scheme: ColorScheme, folder: &Path, address: &str) -> Option<String> {
    if !is_installed("firefox") {
        skip("no Firefox is installed");
        return None;
    }
    let profile = folder.join("profile");
    std::fs::create_dir(&profile).unwrap();
    let scheme = if color_scheme == ColorScheme::Dark { 0 } else { 1 };
    let preferences = format!(
        "user_pref(\"layout.css.prefers-color-scheme.content-override\", {scheme});\n\
         user_pref(\"datareporting.policy.dataSubmissionEnabled\", false);\n\
         user_pref(\"toolkit.telemetry.reportingpolicy.firstRun\", false);\n\
         user_pref(\"browser.shell.checkDefaultBrowser\", false);\n\
         user_pref(\"focusmanager.testmode\", true);\n"
    );
    std::fs::write(profile.join("user.js"), preferences).unwrap();
    let mut child = command("firefox")
        .args(["--headless", "--no-remote", "--profile"])
        .arg(&profile)
        .arg(address)
        .env("MOZ_HEADLESS_WIDTH", "1220")
        .env("MOZ_HEADLESS_HEIGHT", "885")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut result = None;
    let has_ended = eventually(|| {
        result = listener.receive();
        result.is_some()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(has_ended, "the browser hangs, or a script is not valid: {address}");
    result
}
