pub fn yes() -> bool {
    true
}

#[test]
fn helper() {}
