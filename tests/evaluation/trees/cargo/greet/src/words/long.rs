#[test]
fn returns() -> Result<(), String> {
    Err("no word".into())
}
