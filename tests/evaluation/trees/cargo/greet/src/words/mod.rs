pub mod long;
#[cfg(test)]
mod tests {
    #[test]
    fn short() {}
}
