test_that("before", {
  expect_true(TRUE)
})

stop("no database")

test_that("after", {
  expect_true(TRUE)
})
