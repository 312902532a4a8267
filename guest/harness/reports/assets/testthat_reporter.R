# Runs the tests of the package in the working directory, all or those of the given files, and writes each one as a JSON
# line for mergemill to the file that MERGEMILL_OUT names. A file that stops testthat is reported, and the others run.
out <- file(Sys.getenv("MERGEMILL_OUT"), "ab")
root <- getwd()
process <- Sys.getpid()
folder <- "tests/testthat"
state <- new.env()
state$current <- ""
state$ended <- character()

quote_text <- function(text) {
  text <- iconv(substr(paste(text, collapse = " "), 1, 2000), to = "UTF-8", sub = "?")
  text <- gsub("\\", "\\\\", text, fixed = TRUE)
  text <- gsub("\"", "\\\"", text, fixed = TRUE)
  paste0("\"", gsub("[[:cntrl:]]+", "\\\\n", text), "\"")
}

write_row <- function(name, fields) {
  if (Sys.getpid() != process) return(invisible()) # a child that a test forked runs to the end, too
  fields <- c(file = quote_text(file.path(root, folder, name)), fields)
  row <- paste0("{", paste0("\"", names(fields), "\":", fields, collapse = ","), "}\n")
  writeBin(charToRaw(enc2utf8(row)), out)
  flush(out)
}

write_uncollected <- function(name, message) {
  write_row(name, c(uncollected = quote_text(message)))
  state$ended <- c(state$ended, name)
}

judge <- function(results) {
  for (kind in c("error", "failure", "skip")) {
    found <- Filter(function(result) inherits(result, paste0("expectation_", kind)), results)
    if (length(found)) {
      return(list(status = c(error = "error", failure = "failed", skip = "skipped")[[kind]], message = conditionMessage(found[[1]])))
    }
  }
  list(status = "passed", message = "")
}

reporter_class <- R6::R6Class("MergemillReporter", inherit = testthat::Reporter, public = list(
  results = NULL,
  started = NULL,
  start_file = function(filename) {
    state$current <- basename(filename)
    self$results <- list()
    self$started <- list()
  },
  start_test = function(context, test) self$started[[paste(test, collapse = " > ")]] <- proc.time()[["elapsed"]],
  add_result = function(context, test, result) {
    if (is.null(test)) {
      if (inherits(result, "expectation_error")) write_uncollected(state$current, conditionMessage(result))
      return(invisible())
    }
    name <- paste(test, collapse = " > ")
    self$results[[name]] <- c(self$results[[name]], list(result))
  },
  end_test = function(context, test) {
    name <- paste(test, collapse = " > ")
    if (!nzchar(name)) return(invisible())
    verdict <- judge(self$results[[name]])
    seconds <- max(0, proc.time()[["elapsed"]] - c(self$started[[name]], Inf)[[1]])
    write_row(state$current, c(
      name = quote_text(name), status = quote_text(verdict$status), message = quote_text(verdict$message),
      seconds = sprintf("%.3f", seconds)
    ))
    self$results[[name]] <- NULL
  },
  end_file = function() {
    state$ended <- c(state$ended, state$current)
    state$current <- ""
  }
))

run <- function(names) {
  stems <- sub("[.][Rr]$", "", sub("^test[-_]?", "", names))
  pattern <- paste0("^(", paste(gsub("([][{}()+*^$|\\\\?.])", "\\\\\\1", stems), collapse = "|"), ")$")
  reporters <- list(testthat::SummaryReporter$new(), reporter_class$new())
  tryCatch({
    testthat::test_local(root, filter = pattern, reporter = testthat::MultiReporter$new(reporters = reporters), stop_on_failure = FALSE)
    ""
  }, error = function(error) conditionMessage(error))
}

names <- list.files(folder, pattern = "^test.*[.][rR]$")
given <- basename(commandArgs(TRUE))
if (length(given)) names <- intersect(names, given)
for (name in names) {
  tryCatch(parse(file.path(folder, name)), error = function(error) write_uncollected(name, conditionMessage(error)))
}
while (length(remaining <- setdiff(names, state$ended))) {
  state$current <- ""
  message <- run(remaining)
  if (nzchar(message)) cat("testthat stopped:", message, "\n")
  if (nzchar(message) && nzchar(state$current)) {
    write_uncollected(state$current, message)
  } else if (!any(remaining %in% state$ended)) {
    for (name in remaining) write_uncollected(name, if (nzchar(message)) message else "testthat did not run this file")
  }
}
close(out)
