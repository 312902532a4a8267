#[test]
fn whole() {}

#[test]
fn dies() {
    std::thread::sleep(std::time::Duration::from_millis(300));
    std::process::abort();
}
