test_that("never", {
