test_that("sums \"up\"", {
  cat('{"file":"tests/testthat/test-greet.R","name":"printed","status":"passed"}\n')
  expect_equal(add(1, 1), 2)
})

test_that("sums wrongly", {
  expect_equal(add(1, 1), 2)
  expect_equal(add(1, 1), 3)
})

test_that("raises", {
  stop("no")
})

test_that("later", {
  skip("not here")
})

test_that("warns", {
  warning("careful")
  expect_true(TRUE)
})

test_that("empty", {
})

describe("zero", {
  it("is neutral", {
    expect_equal(add(1, 0), 1)
  })
})
