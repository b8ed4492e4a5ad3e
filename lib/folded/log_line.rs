//! Recognizes lines of logs.

use bstr::ByteSlice as _;

use crate::bytes::{parse_number, split_once, split_word, split_words, starts_with_any};

/// Levels with which lines of logs begin.
const LEVELS: [&[u8]; 9] =
    [b"TRACE", b"DEBUG", b"INFO", b"NOTICE", b"WARN", b"WARNING", b"ERROR", b"FATAL", b"CRITICAL"];

/// Number of first words among which the time of a line is.
const MAX_WORDS_BEFORE_TIME: usize = 4;

/// Returns true for a line that begins with a time, a date, a level or a name with a process ID, for one of a web server, and
/// for the result of a test.
pub(crate) fn is_log_line(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    begins_with_time(line)
        || begins_with_level(line)
        || begins_with_process(line)
        || begins_with_request_id(line)
        || is_of_web_server(line)
        || split_words(line).skip(1).take(MAX_WORDS_BEFORE_TIME - 1).any(is_date)
        || memchr::memchr_iter(b'[', line).any(|start| is_bracketed_date(first_bytes(&line[start + 1..])))
        || starts_with_any(line, &[b"ok ", b"not ok "]) && split_words(line).nth(2) == Some(b"-")
}

/// Returns true for a line that begins with a time, a date, or a number of seconds in brackets.
pub(crate) fn begins_with_time(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let line = line.strip_prefix(b"[").map_or(line, <[u8]>::trim_ascii_start);
    let word = split_word(line).0;
    is_date(word) || is_month_and_day(line) || is_seconds(word)
}

/// Most bytes of a date and time.
const MAX_DATE: usize = 64;

/// Returns as many first bytes as a date has, so that a line of many brackets does not take a time that is quadratic in its length.
fn first_bytes(text: &[u8]) -> &[u8] {
    &text[..text.len().min(MAX_DATE)]
}

/// Returns true for `2026-11-23T10:00:00Z` or `10:00:01.5`.
fn is_date(word: &[u8]) -> bool {
    let mut numbers = word.split(|byte| !byte.is_ascii_digit()).filter(|number| !number.is_empty());
    (8..=MAX_DATE).contains(&word.len())
        && numbers.nth(2).is_some()
        && word.iter().any(|byte| b"-:/".contains(byte))
        && word.iter().all(|byte| byte.is_ascii_digit() || b"-:/.,TZ+[]".contains(byte))
}

/// Returns true for `INFO `, `WARNING: ` or `[INFO] ` and several words.
fn begins_with_level(line: &[u8]) -> bool {
    let (word, rest) = split_word(line);
    let level = word.strip_prefix(b"[").and_then(|word| word.strip_suffix(b"]")).unwrap_or(word);
    LEVELS.contains(&level.strip_suffix(b":").unwrap_or(level)) && split_words(rest).count() > 1
}

/// Returns true for `sshd[123]: `.
fn begins_with_process(line: &[u8]) -> bool {
    let Some((name, rest)) = split_once(line, "[") else { return false };
    let id = split_once(rest, "]: ").map(|(id, _)| id);
    !name.is_empty() && !name.contains(&b' ') && id.and_then(parse_number).is_some()
}

/// Fewest characters of the ID of a request.
const MIN_REQUEST_ID: usize = 8;

/// Returns true for `[00000000-1234] `.
fn begins_with_request_id(line: &[u8]) -> bool {
    let id = line.strip_prefix(b"[").and_then(|rest| split_once(rest, "] ")).map_or(&b""[..], |(id, _)| id);
    id.len() >= MIN_REQUEST_ID
        && id.iter().any(u8::is_ascii_digit)
        && id.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
}

/// Returns true for a line with the request, the client's address or the browser of a web server's log.
fn is_of_web_server(line: &[u8]) -> bool {
    let has_request = [" HTTP/1.0\"", " HTTP/1.1\"", " HTTP/2.0\"", " HTTP/2\"", " HTTP/3.0\"", "Mozilla/5.0 ("];
    has_request.iter().any(|part| line.contains_str(part))
        || split_words(line).count() > 3 && split_words(line).take(2).any(is_address)
}

/// Returns true for `10.0.0.1`.
fn is_address(word: &[u8]) -> bool {
    word.split(|byte| *byte == b'.').filter(|part| parse_number(part).is_some_and(|part| part < 256)).count() == 4
        && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// Returns true if a text begins like `27/Nov/2026:07`, `Fri Nov 27 07:00:00 2026]` or `2026-11-27 07:00:01]`.
fn is_bracketed_date(text: &[u8]) -> bool {
    is_web_date(text) || is_date(split_word(text).0) || is_month_and_day(split_word(text).1)
}

/// Returns true if a text begins like `27/Nov/2026:07`.
fn is_web_date(text: &[u8]) -> bool {
    const FORM: &[u8; 14] = b"00/Mmm/0000:00";
    text.len() >= FORM.len()
        && FORM.iter().zip(text).all(|(form, byte)| match form {
            b'0' => byte.is_ascii_digit(),
            b'M' => byte.is_ascii_uppercase(),
            b'm' => byte.is_ascii_lowercase(),
            _ => byte == form,
        })
}

/// Returns true for `Nov 23 10:00:01`.
fn is_month_and_day(line: &[u8]) -> bool {
    let mut words = split_words(line);
    let months = [&b"Jan"[..], b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let is_month = words.next().is_some_and(|word| months.contains(&word));
    is_month
        && words.next().is_some_and(|day| parse_number(day).is_some())
        && words.next().is_some_and(|time| time.contains(&b':'))
}

/// Returns true for `12.345678]`, as the kernel's log has it.
fn is_seconds(word: &[u8]) -> bool {
    let parts = word.strip_suffix(b"]").and_then(|seconds| split_once(seconds, "."));
    parts.is_some_and(|(whole, fraction)| {
        parse_number(whole).is_some() && fraction.len() == 6 && parse_number(fraction).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::is_log_line;

    #[test]
    fn lines_of_logs_are_told_from_stacks() {
        for line in [
            "127.0.0.1 - - [Fri Nov 27 07:00:00 2026] \"GET / HTTP/1.0\" 441",
            "10.0.0.1 - - [2026-11-27 07:00:01] \"GET /a;b HTTP/1.1\" 200 441",
            "10.0.0.1 2026-11-27T07:00:00Z \"GET / HTTP/1.1\" \"Mozilla/5.0 (X11; Linux)\" 200",
            "10.0.0.1;-;-;\"GET /a HTTP/1.1\";200 441",
            "1.234 10.0.0.1 TCP_MISS/200 441 GET http://a/;x - DIRECT/1.1.1.1 1",
            "user agent Mozilla/5.0 (X11; Linux x86_64) 200",
            "INFO main(): loaded count 12",
            "[INFO] loaded 12",
            "sshd[123]: session opened port 22",
            "make[0]: Entering directory (x) 0",
            "[00000000-1234] Completed 200 OK in 5",
            "^4764e68 (x                 2026-11-27 07:33:40 +0000   1) main;f 15",
            "ok 1 - foo() returns 5",
        ] {
            assert!(is_log_line(line.as_bytes()), "{line}");
        }
        for line in [
            "[main tid=1] run 5",
            "[deadbeef];f 5",
            "worker[3];f 5",
            "f[2] 5",
            "INFO 5",
            "ok 5",
            "10.0.0.1;handler;render 3",
            "12:01:03;main;foo 3",
            "main;f;GET /x 12",
            "Error;main 3",
        ] {
            assert!(!is_log_line(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn many_brackets_take_no_time_that_is_quadratic_in_their_number() {
        for text in ["[", "[1", "[x-2026-11-27T", "[a "] {
            assert!(!is_log_line(text.repeat(1 << 17).as_bytes()), "{text}");
        }
    }
}
