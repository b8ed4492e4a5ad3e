//! Names that differ because the sides are two copies of one program: its file name, and the folders and files of its sources.
//!
//! All are found in the profiles, since a command does not tell which of its programs does the work. Two programs are taken
//! for one only if their functions are alike: what appeared and what vanished is a real difference, unless only names differ.

use super::counterpart::{Counterpart, NamePart, describe_all};
use super::renaming::Renaming;
use super::side_names::SideNames;
use super::sources::{find_files, find_folders};
use super::thread_names::{has_name, without_numbers};
use crate::Error;
use crate::profile::Profile;

/// The names of two sides that are compared as one, and the number of those that might be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counterparts {
    names: Vec<Counterpart>,
    /// The number of functions that differ in nothing but a line.
    moved_lines: usize,
}

impl Counterparts {
    /// Returns the counterparts of two sides. Two folders or files are counterparts if they have functions of equal names. So are
    /// the heaviest program that only the side before has and the heaviest that only the side after has, if they call the same
    /// functions; if they are the only ones, it is enough that they have the same functions.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a sum does not fit.
    pub fn find(before: &[Profile], after: &[Profile]) -> Result<Self, Error> {
        let [mut old, new] = [SideNames::of_functions(before)?, SideNames::of_functions(after)?];
        let mut found = Self::from_names(find_folders(&old.functions, &new.functions));
        old.rename(&found);
        let files = Self::from_names(find_files(&old.functions, &new.functions));
        old.rename(&files);
        found.names.extend(files.names);
        if old.has_other_programs(&new) && new.has_other_programs(&old) {
            let sides = [old.with_calls(before, &found)?, new.with_calls(after, &Self::default())?];
            if let Some(program) = find_program(&sides) {
                let object = find_object(&sides, &program);
                found.names.extend([program].into_iter().chain(object));
            }
        }
        Ok(found)
    }

    /// Creates the counterparts from names that are known.
    pub(super) fn from_names(names: Vec<Counterpart>) -> Self {
        Self { names, moved_lines: 0 }
    }

    /// Adds other counterparts.
    pub(super) fn extend(&mut self, others: Self) {
        self.names.extend(others.names);
        self.moved_lines = self.moved_lines.max(others.moved_lines);
    }

    /// Returns the counterparts, folders first.
    pub fn iter(&self) -> impl Iterator<Item = &Counterpart> {
        self.names.iter()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns what gives the frames before their names after.
    pub(super) fn renaming(&self) -> Renaming<'_> {
        Renaming::new(&self.names)
    }

    /// Describes what is compared as one; `None` if nothing is.
    pub fn describe(&self) -> Option<String> {
        describe_all(&self.names)
    }

    /// Sets the number of functions that differ in nothing but a line.
    pub(super) fn with_moved_lines(self, moved_lines: usize) -> Self {
        Self { moved_lines, ..self }
    }

    /// Says how many functions differ in nothing but a line; `None` if they are few.
    pub fn describe_moved_lines(&self) -> Option<String> {
        let count = self.moved_lines;
        (count > 0).then(|| format!("at least {count} functions differ in nothing but a line in their names"))
    }
}

fn find_program([before, after]: &[SideNames; 2]) -> Option<Counterpart> {
    let (old, new) = (before.heaviest_only_here(after)?, after.heaviest_only_here(before)?);
    // A thread or process whose name is on both sides is none of another name, and one of several of its name none of the others.
    let [old_name, new_name] = [old.0, new.0].map(without_numbers);
    let others = [(before, old.0, new_name), (after, new.0, old_name)];
    if others.iter().any(|(side, root, name)| has_name(side.programs.keys().filter(|other| *other != root), name)) {
        return None;
    }
    let are_single =
        [(before, after), (after, before)].iter().all(|(one, other)| one.programs_only_here(other).count() == 1);
    let is_same = old.1.is_same(old.0, new.1, new.0) || are_single && old.1.has_functions_of(new.1);
    is_same.then(|| Counterpart { before: old.0.to_owned(), after: new.0.to_owned(), part: NamePart::Whole })
}

/// Returns the names of unknown functions of the program, which are its file in brackets; that of a thread may be cut.
fn find_object([before, after]: &[SideNames; 2], program: &Counterpart) -> Option<Counterpart> {
    Some(Counterpart {
        before: before.object_only_here(after, &program.before)?,
        after: after.object_only_here(before, &program.after)?,
        part: NamePart::Whole,
    })
}

#[cfg(test)]
mod tests {
    use super::{Counterpart, Counterparts, NamePart};
    use crate::profile::{Profile, Weight, Weights};

    fn profile(stacks: &[&str]) -> Profile {
        let mut profile = Profile::new(false);
        for (weight, stack) in (1..).zip(stacks) {
            let frames: Vec<_> = stack.split(';').map(|name| profile.frames.intern(name.as_bytes())).collect();
            profile.add(&frames, Weights::plain(Weight::new(weight))).unwrap();
        }
        profile
    }

    /// Returns the counterparts of two profiles as pairs.
    fn find(before: &[&str], after: &[&str]) -> Vec<(String, String)> {
        let found = Counterparts::find(&[profile(before)], &[profile(after)]).unwrap();
        found.names.into_iter().map(|Counterpart { before, after, .. }| (before, after)).collect()
    }

    fn pair(before: &str, after: &str) -> (String, String) {
        (before.to_owned(), after.to_owned())
    }

    #[test]
    fn finds_the_program_behind_others() {
        let found = find(&["sh;main", "env;x", "app-v1;main;[app-v1]"], &["sh;main", "app-v2;main;[app-v2]"]);
        assert_eq!(found, [pair("app-v1", "app-v2"), pair("[app-v1]", "[app-v2]")]);
        assert_eq!(find(&["app;main"], &["app;main", "helper;work"]), []);
        assert_eq!(
            find(&["old/app.py;run;work", "old/app.py;run"], &["new/app.py;run;work", "new/app.py;run"]),
            [pair("old/app.py", "new/app.py")]
        );
        assert_eq!(find(&["one;parse;read"], &["other;parse;read"]), [pair("one", "other")]);
    }

    #[test]
    fn threads_of_a_pool_are_none_of_another() {
        let threads = |numbers: [usize; 3]| numbers.map(|number| format!("w-7/{number};work;parse;read"));
        let [before, after] = [threads([1, 2, 3]), threads([1, 2, 9])];
        let find = |before: &[String], after: &[String]| {
            let [before, after] = [before, after].map(|side| side.iter().map(String::as_str).collect::<Vec<_>>());
            find(&before, &after)
        };
        assert_eq!(find(&before, &after), []);
        assert_eq!(find(&before[..1], &after[2..]), [pair("w-7/1", "w-7/9")]);
    }

    #[test]
    fn programs_without_common_functions_are_two() {
        for (before, after) in [
            (&["value"][..], &["other"][..]),
            (&["gzip;_start;main;deflate;memcpy"], &["xz;_start;main;lzma;memcpy"]),
            (&["gzip;main"], &["xz;main"]),
            (&["gzip;[gzip]"], &["xz;[xz]"]),
            // Threads that share nothing but the run time and the kernel.
            (
                &["main;JavaMain;App.run", "Finalizer;start_thread;thread_native_entry;Thread::call_run"],
                &["main;JavaMain;App.run", "GC_Thread#0;start_thread;thread_native_entry;Thread::call_run"],
            ),
            (&["Finalizer;[libjvm.so];futex_wait_[k]"], &["GC_Thread#0;[libjvm.so];futex_wait_[k]"]),
            // The names are alike, but not what they run.
            (&["worker-1;main;read;parse"], &["worker-2;main;sort;write"]),
        ] {
            assert_eq!(find(before, after), [], "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_function_that_grew_much_makes_no_other_program() {
        let stacks = |program: &str, functions: [&str; 4], often: usize| {
            let once = functions.map(|function| format!("{program};main;{function};read"));
            // A stack weighs as much as its number.
            let grown = (0..often).map(|_| format!("{program};main;grown;hash"));
            once.into_iter().chain(grown).collect::<Vec<String>>()
        };
        let find = |before: &[String], after: &[String]| {
            find(
                &before.iter().map(String::as_str).collect::<Vec<_>>(),
                &after.iter().map(String::as_str).collect::<Vec<_>>(),
            )
        };
        let [same, other] = [["parse", "sort", "fold", "join"], ["load", "store", "draw", "join"]];
        let before = stacks("one", same, 1);
        assert_eq!(find(&before, &stacks("other", same, 30)), [pair("one", "other")]);
        assert_eq!(find(&before, &stacks("other", other, 30)), [], "two programs");
        let with_second = [stacks("other", same, 30), vec!["second;main;parse;read".to_owned()]].concat();
        assert_eq!(find(&before, &with_second), [], "two new programs");
        // What they have in common is a library's.
        let library = ["runtime.mallocgc", "runtime.newobject", "strings.Builder", "sort.Sort"];
        let after = stacks("other", library, 30).iter().map(|stack| stack.replace("grown", "new")).collect::<Vec<_>>();
        assert_eq!(find(&stacks("one", library, 1), &after), []);
    }

    #[test]
    fn a_framework_makes_two_services_no_program() {
        let stacks = |program: &str, functions: [&str; 2]| {
            let gin = format!("{program};runtime.goexit;net/http.serve;github.com/gin-gonic/gin.(*Engine).ServeHTTP");
            let own = functions.map(|function| format!("{gin};main.main.func1;main.{function}"));
            let names = ["Next", "getValue", "reset", "JSON", "Write", "Abort", "Bind", "Set"];
            let framework = names.map(|name| format!("{gin};github.com/gin-gonic/gin.(*Context).{name}"));
            own.into_iter().chain(framework).collect::<Vec<String>>()
        };
        let find = |before: &[String], after: &[String]| {
            let [before, after] = [before, after].map(|side| side.iter().map(String::as_str).collect::<Vec<_>>());
            find(&before, &after)
        };
        let before = stacks("authd", ["login", "check"]);
        assert_eq!(find(&before, &stacks("cartd", ["addItem", "total"])), []);
        assert_eq!(find(&before, &stacks("accountd", ["login", "check"])), [pair("authd", "accountd")]);
    }

    #[test]
    fn versions_may_have_less_in_common() {
        assert_eq!(find_program_with_one_common_call("app-1", "app-2"), [pair("app-1", "app-2")]);
        assert_eq!(find_program_with_one_common_call("one", "other"), []);
    }

    /// Returns the counterparts of two programs that have one call in common, by weight 6 of 50.
    fn find_program_with_one_common_call(before: &str, after: &str) -> Vec<(String, String)> {
        let [old, new] = [(before, ["parse", "sort"]), (after, ["fold", "join"])].map(|(program, [often, once])| {
            // A stack weighs as much as its number.
            ["read", "read", "read", often, often, often, once].map(|callee| format!("{program};main;{callee}"))
        });
        find(&old.each_ref().map(String::as_str), &new.each_ref().map(String::as_str))
    }

    #[test]
    fn a_root_that_is_called_now_is_no_other_program() {
        let called = ["_start;main;run;parse", "_start;main;run;sort"];
        assert_eq!(find(&["main;run;parse", "main;run;sort"], &called), []);
        let renamed = ["app-v2;main;run;parse", "app-v2;main;run;sort"];
        assert_eq!(find(&["app-v1;main;run;parse", "app-v1;main;run;sort"], &renamed), [pair("app-v1", "app-v2")]);
    }

    #[test]
    fn finds_the_file_of_the_sources() {
        let stack = |file: &str, functions: &[&str]| {
            let functions = functions.iter().map(|name| format!("{name} (/srv/{file}:7)"));
            ["python3".to_owned()].into_iter().chain(functions).collect::<Vec<_>>().join(";")
        };
        let all = ["<module>", "page", "render"];
        assert_eq!(find(&[&stack("v1.py", &all)], &[&stack("v2.py", &all)]), [pair("/srv/v1.py", "/srv/v2.py")]);
        // The other files of a copy are in its folder.
        let [old, new] = ["/v1/a.py", "/v2/b.py"]
            .map(|file| format!("p;<module> ({}app.py);page ({file});render ({file})", &file[..4]));
        assert_eq!(find(&[&old], &[&new]), [pair("/v1/a.py", "/v2/b.py"), pair("/v1", "/v2")]);
        // A name may be equal by chance, and most of a file may be another.
        assert_eq!(find(&[&stack("v1.py", &all[..2])], &[&stack("v2.py", &all[..2])]), []);
        let others = ["<module>", "page", "render", "a", "b", "c", "d"];
        assert_eq!(find(&[&stack("v1.py", &all)], &[&stack("v2.py", &others)]), []);
        // Both sides have the file.
        let both = [stack("v1.py", &all), stack("v2.py", &all)];
        assert_eq!(find(&[&both[0]], &[&both[0], &both[1]]), []);
    }

    #[test]
    fn finds_the_file_of_scripts_without_folders() {
        let stack = |file: &str, functions: &[&str]| {
            let functions = functions.iter().map(|name| format!("{name} ({file})"));
            ["python3".to_owned()].into_iter().chain(functions).collect::<Vec<_>>().join(";")
        };
        let find = |[before, after]: [&str; 2], all: &[&str]| find(&[&stack(before, all)], &[&stack(after, all)]);
        let all = ["<module>", "checkout", "price"];
        for [before, after] in [["cart.py", "basket.py"], ["cart.js", "basket.js"], ["cart.rb", "shop/basket.rb"]] {
            assert_eq!(find([before, after], &all), [pair(before, after)]);
        }
        assert_eq!(find(["cart.py:3", "basket.py:4"], &all), [pair("cart.py", "basket.py")]);
        assert_eq!(find(["cart.py", "basket.py"], &all[..2]), [], "one name may be chance");
        assert_eq!(
            find(["cart.py", "basket.py"], &["main", "run", "__init__", "load", "save"]),
            [],
            "any script has these"
        );
        assert_eq!(find(["cart.py", "json.py"], &all), [], "a module of the standard library");
        // Another file has functions of these names.
        let plugins = |file: &str| [stack(file, &all), stack("view.py", &all)];
        let [before, after] = ["cart.py", "basket.py"].map(plugins);
        assert_eq!(super::tests::find(&[&before[0], &before[1]], &[&after[0], &after[1]]), []);
    }

    #[test]
    fn files_with_versions_are_of_one_package_by_name() {
        let stack = |file: &str| ["load", "decode", "top"].map(|name| format!("{name} ({file})")).join(";");
        for (before, after, is_pair) in [
            ("/r/guava-31.1-jre.jar", "/r/guava-32.0-jre.jar", true),
            ("/lib/libssl-1.1.so", "/lib/libssl-3.so", true),
            ("/r/log4j-1.2.jar", "/r/logback-1.2.jar", false),
            ("/gems/3.1.0/x/etc-1.3.0.gemspec", "/gems/3.1.0/x/prettyprint-0.1.1.gemspec", false),
            ("plugins/csv.py", "plugins/json.py", false),
            ("/usr/lib/python3.11/json/decoder.py", "/usr/lib/python3.11/csv/decoder.py", false),
        ] {
            let expected: Vec<_> = is_pair.then(|| pair(before, after)).into_iter().collect();
            assert_eq!(find(&[&stack(before)], &[&stack(after)]), expected);
        }
    }

    #[test]
    fn finds_the_folder_of_the_sources() {
        let found = find(
            &["python3;<module> (/w/old/app.py);run (/w/old/lib/x.py:3);sort (/usr/lib/python3/sort.py)"],
            &["python3;<module> (/w/new/app.py);run (/w/new/lib/x.py:3);sort (/usr/lib/python3/sort.py);a/b"],
        );
        assert_eq!(found, [pair("/w/old", "/w/new")]);
        // The lines of a function may have moved.
        let found = find(&["p;f:old/app.py:12;g:old/app.py:20"], &["p;f:new/app.py:12;g:new/app.py:25"]);
        assert_eq!(found, [pair("old", "new")]);
        // The file of a new function may be in a folder that both have.
        assert_eq!(find(&["p;f (/src/a.py);g (/src/b.py)"], &["p;f (/lib/a.py);g (/src/b.py)"]), []);
    }

    #[test]
    fn one_equal_name_is_no_folder() {
        assert_eq!(find(&["p;<module> (/x/setup.py)"], &["p;<module> (/y/setup.py)"]), []);
        let main = "p;<module> (/x/app.py);main (/x/app.py)";
        assert_eq!(find(&[main], &[&main.replace("/x", "/y")]), [], "all scripts have these");
        let old = stack_in_folder("/x", &["main", "init", "read", "read2", "read3"]);
        let new = stack_in_folder("/y", &["main", "init", "sort", "sort2", "sort3"]);
        assert_eq!(find(&[&old], &[&new]), [], "most of the folder is another");
    }

    /// Returns a stack of functions, each in a file of its name.
    fn stack_in_folder(folder: &str, functions: &[&str]) -> String {
        let functions = functions.iter().map(|name| format!("{name} ({folder}/{name}.c)"));
        ["p".to_owned()].into_iter().chain(functions).collect::<Vec<_>>().join(";")
    }

    #[test]
    fn renames_whole_names_and_folders_only() {
        let counterpart =
            |before: &str, after: &str, part| Counterpart { before: before.into(), after: after.into(), part };
        let counterparts = Counterparts::from_names(vec![
            counterpart("/w/old", "/w/new", NamePart::Folder),
            counterpart("old", "n$w", NamePart::Folder),
            counterpart("app.v1", "a$=b", NamePart::Whole),
            counterpart("x/app.py", "y/app.py", NamePart::Whole),
            counterpart("/srv/v1.py", "/srv/v2.py", NamePart::File),
        ]);
        let renaming = counterparts.renaming();
        let renamed = |name: &str| String::from_utf8(renaming.rename(name.as_bytes()).into_owned()).unwrap();
        assert_eq!(["app.v1", "appxv1", "app.v1x"].map(renamed), ["a$=b", "appxv1", "app.v1x"]);
        let names = ["f (/srv/v1.py:3)", "/srv/v1.py", "f (/srv/v1.pyc)", "f (/old/srv/v1.py)"];
        assert_eq!(names.map(renamed), ["f (/srv/v2.py:3)", "/srv/v2.py", "f (/srv/v1.pyc)", "f (/old/srv/v1.py)"]);
        let names = ["f (/w/old/x.py)", "/w/old/x.js", "f (/w/older/x.py)", "f (/z/w/old/x.py)"];
        assert_eq!(names.map(renamed), ["f (/w/new/x.py)", "/w/new/x.js", "f (/w/older/x.py)", "f (/z/w/old/x.py)"]);
        let names = ["old/app.py", "f:old/app.py:12", "f (gold/app.py)", "old", "x/app.py", "f (x/app.py)"];
        assert_eq!(
            names.map(renamed),
            ["n$w/app.py", "f:n$w/app.py:12", "f (gold/app.py)", "old", "y/app.py", "f (x/app.py)"]
        );
    }

    #[test]
    fn describes_what_is_taken_for_one() {
        let found = Counterparts::find(
            &[profile(&["p;f:old/app.py:12;g:old/app.py:20"])],
            &[profile(&["p;f:new/app.py:12;g:new/app.py:25"])],
        );
        assert_eq!(found.unwrap().describe().unwrap(), "old/ is compared as new/");
        assert_eq!(Counterparts::default().describe(), None);
    }

    #[test]
    fn no_package_is_a_copy_of_another_one() {
        let stacks = |package: &str| {
            let stack = |name: &str| format!("python3;run (/srv/app.py);{name} ({package}/unicode.py)");
            ["encode", "decode", "fold"].map(stack)
        };
        let find = |before: &str, after: &str| {
            let [before, after] = [before, after].map(stacks);
            find(&before.each_ref().map(String::as_str), &after.each_ref().map(String::as_str))
        };
        assert_eq!(find("pyparsing", "idna"), [], "as fg-record writes the paths of packages");
        let path = |version: &str, package: &str| format!("/opt/{version}/site-packages/{package}");
        assert_eq!(find(&path("3.11", "alpha"), &path("3.11", "beta")), []);
        assert_eq!(find("/srv/app", &path("3.11", "beta")), []);
        assert_eq!(find("json", "/srv/app"), [], "the standard library");
        assert_eq!(find(&path("3.11", "beta"), &path("3.12", "beta")), [pair("/opt/3.11", "/opt/3.12")]);
        assert_eq!(find("/srv/src/beta", &path("3.12", "beta")), [pair("/srv/src", "/opt/3.12/site-packages")]);
        assert_eq!(find("/srv/old", "/srv/new"), [pair("/srv/old", "/srv/new")]);
        let gem = |version: &str| format!("/var/lib/gems/3.1.0/gems/{version}/lib");
        let gems = ["rack-2.1.4", "rack-3.0.8"].map(gem);
        assert_eq!(find(&gems[0], &gems[1]).len(), 1, "versions of a package");
        assert_eq!(find(&gem("rack-2.1.4"), &gem("rackup-2.1.4")), []);
    }
}
