#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;

    #[test]
    fn passes() {
        std::io::stdout().write_all(b"test tests::fails ... ok\n").unwrap();
    }

    #[test]
    fn fails() {
        println!("running 3 tests\ntest tests::phantom ... ok\n");
        println!("     Running tests/it.rs (target/debug/deps/it-0123456789abcdef)\n\nrunning 2 tests");
        println!("test other ... ok\n   Doc-tests noisy");
        panic!("it is not\ntest tests::fails ... ok");
    }

    #[test]
    #[should_panic(expected = "a\nb")]
    fn panics_in_another_way() {
        panic!("ok c")
    }

    #[test]
    #[ignore = "why not"]
    fn ignored() {}

    #[test]
    fn has_a_child() {
        Command::new("echo").arg("test tests::printed ... ok").status().unwrap();
        Command::new("printf").arg("no line end").status().unwrap();
    }
}
