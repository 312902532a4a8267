# Runs test/runtests.jl of the package in the working directory inside a test set of our own type, which nested test sets
# inherit. Each one with tests of its own, or without nested ones, is a JSON line for mergemill in the file that
# MERGEMILL_OUT names; with arguments, only those of the given files, unless runtests.jl is among them.
module Mergemill

using Test

const OUT = open(ENV["MERGEMILL_OUT"], "a")
const MAIN = realpath("test/runtests.jl")
const SELECTED = Set(realpath(path) for path in ARGS if isfile(path))
const IS_COMPLETE = isempty(ARGS) || MAIN in SELECTED
const REPORTED = Set{String}()
const REASON = Ref("runtests.jl ended Julia")  # why files that it has not included yet have no result
const STATUSES = ("skipped", "passed", "failed", "error")  # the highest one of its tests is that of a test set
const HEADS = r"^(Test Failed at|Log Test Failed at|Error During Test|Unexpected Pass|Test threw exception|Got exception outside|Stacktrace)"

function quote_text(text)
    text = first(string(text), 2000)
    text = isvalid(text) ? text : repr(text)
    escaped = IOBuffer()
    for char in text
        if char in ('"', '\\')
            print(escaped, '\\', char)
        elseif iscntrl(char)
            print(escaped, "\\u", string(UInt32(char); base = 16, pad = 4))
        else
            print(escaped, char)
        end
    end
    return "\"" * String(take!(escaped)) * "\""
end

is_selected(file) = IS_COMPLETE || file in SELECTED

function write_row(file, fields...)
    push!(REPORTED, file)
    is_selected(file) || return
    row = join(("\"$key\":$value" for (key, value) in ("file" => quote_text(file), fields...)), ",")
    write(OUT, "{$row}\n")
    flush(OUT)
end

write_uncollected(file, message) = write_row(file, "uncollected" => quote_text(message))

"The file that is being included, which stays known in functions of other files."
function find_file()
    path = Base.source_path(nothing)
    return path === nothing || !isfile(path) ? MAIN : realpath(path)
end

mutable struct Outcome
    status::Int
    message::String
end

mutable struct LineSet <: Test.AbstractTestSet
    path::String
    file::String
    parent::Union{LineSet,Nothing}
    started::Float64
    outcomes::Vector{Pair{String,Outcome}}
    has_nested::Bool
end

function LineSet(description; options...)
    parent = Test.get_testset_depth() == 0 ? nothing : Test.get_testset()
    parent === nothing || (parent.has_nested = true)
    path = parent === nothing || isempty(parent.path) ? "$description" : "$(parent.path) > $description"
    return LineSet(path, find_file(), parent, time(), Pair{String,Outcome}[], false)
end

rank(::Test.Result) = 3
rank(::Test.Pass) = 2
rank(::Test.Broken) = 1
rank(result::Test.Error) = result.test_type === :test_unbroken ? 3 : 4

"The first two lines of a failure that have its reason."
function find_message(result)
    lines = [strip(line) for line in split(sprint(show, result), '\n')]
    return join(first(filter(line -> !isempty(line) && !occursin(HEADS, line), lines), 2), "; ")
end

first(text::AbstractString, count) = Base.first(text, count)
first(items::Vector, count) = items[1:min(count, end)]

function add_result!(outcomes, file, result)
    place = findfirst(entry -> entry.first == file, outcomes)
    place === nothing && push!(outcomes, file => Outcome(1, ""))
    outcome = place === nothing ? last(outcomes).second : outcomes[place].second
    if rank(result) > max(outcome.status, 2)
        outcome.message = find_message(result)
    end
    outcome.status = max(outcome.status, rank(result))
end

function Test.record(set::LineSet, result::Test.Result)
    add_result!(set.outcomes, find_file(), result)
    if rank(result) > 2
        println(isempty(set.path) ? "outside of test sets" : set.path, ": ", result)
    end
    return result
end

"Write the results in a test set of another type; its nested ones have that type, too."
function Test.record(set::LineSet, other::Test.AbstractTestSet)
    set.has_nested = true
    other isa LineSet || write_foreign(other, set.path, find_file())
    return other
end

function write_foreign(set, parent, file)
    description = hasproperty(set, :description) ? string(set.description) : "test set"
    path = isempty(parent) ? description : "$parent > $description"
    results = hasproperty(set, :results) ? set.results : []
    passed = hasproperty(set, :n_passed) ? set.n_passed : 0
    outcomes = passed > 0 ? [file => Outcome(2, "")] : Pair{String,Outcome}[]
    nested = 0
    for result in results
        if result isa Test.AbstractTestSet
            nested += 1
            write_foreign(result, path, file)
        elseif result isa Test.Result
            add_result!(outcomes, file, result)
        end
    end
    write_outcomes(path, file, outcomes, nested > 0, 0.0)
end

function Test.finish(set::LineSet)
    write_outcomes(set.path, set.file, set.outcomes, set.has_nested, time() - set.started)
    return set
end

function write_outcomes(path, file, outcomes, has_nested, seconds)
    if isempty(outcomes) && !has_nested
        outcomes = [file => Outcome(2, "")]
    end
    for (own, outcome) in outcomes
        status = STATUSES[outcome.status]
        write_row(
            own, "name" => quote_text(isempty(path) ? "outside of test sets" : path), "status" => "\"$status\"",
            "message" => quote_text(outcome.message), "seconds" => string(round(max(seconds, 0.0); digits = 3)),
        )
    end
end

function find_reason(error)
    while error isa LoadError
        error = error.error
    end
    return sprint(showerror, error)
end

has_tests(path) = isfile(path) && occursin(r"@test(set|_\w+)?\b", read(path, String))

"Include a file; one with tests that ends with an error outside of all test sets does not end the ones after it."
function include_file(path, map = identity)
    file = abspath(joinpath(dirname(something(Base.source_path(nothing), MAIN)), path))
    try
        return map === identity ? Base.include(Main, path) : Base.include(map, Main, path)
    catch error
        is_isolated = Test.get_testset_depth() == 1 && has_tests(file) && !(error isa InterruptException)
        is_isolated || rethrow()
        report_fault(realpath(file), error, catch_backtrace())
    end
end

function report_fault(file, error, trace)
    showerror(stdout, error, trace)
    println()
    write_uncollected(file, find_reason(error))
end

"Report the given files of which nothing is known, if the run ended early or nothing else is reported."
function report_others()
    if !IS_COMPLETE && (!isempty(REASON[]) || isempty(intersect(SELECTED, REPORTED)))
        for file in sort!(collect(setdiff(SELECTED, REPORTED)))
            write_uncollected(file, isempty(REASON[]) ? "runtests.jl runs no test of this file" : REASON[])
        end
    end
end

function run()
    empty!(ARGS)
    cd("test")
    atexit(report_others)
    @testset LineSet "" begin
        try
            Base.include(Main, MAIN)
            REASON[] = ""
        catch error
            error isa InterruptException && rethrow()
            report_fault(MAIN, error, catch_backtrace())
            REASON[] = find_reason(error)
        end
    end
end

end

try
    @eval include(path::AbstractString) = Mergemill.include_file(path)
    @eval include(map::Function, path::AbstractString) = Mergemill.include_file(path, map)
catch error  # a release in which this name is a constant: a file that ends with an error then ends the run
    println(stderr, "include cannot be replaced: ", error)
end
Mergemill.run()
