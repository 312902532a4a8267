# Writes every test of minitest or test-unit as a JSON line for mergemill to the file that MERGEMILL_OUT names.
# RUBYOPT=-r loads it before anything else; it installs itself when one of the two frameworks is loaded.

module Mergemill
  PROCESS = Process.pid
  ESCAPES = { '"' => '\\"', '\\' => '\\\\' }.freeze

  def self.quoted(text)
    text = text.to_s.encode('UTF-8', invalid: :replace, undef: :replace).scrub('?')[0, 2000]
    '"' + text.gsub(/["\\\x00-\x1f]/) { |c| ESCAPES[c] || format('\\u%04x', c.ord) } + '"'
  end

  def self.write(file, name, status, message, seconds)
    path = ENV['MERGEMILL_OUT'] or return
    return unless Process.pid == PROCESS # a child that a test forked runs to the end, too
    row = format('{"file":%s,"name":%s,"status":"%s","message":%s,"seconds":%.6f}', quoted(file && File.expand_path(file)),
                 quoted(name), status, quoted(message), seconds.to_f)
    File.open(path, 'a') { |out| out.write(row + "\n") }
  end

  def self.find_file(klass, method)
    inner = klass.instance_method(method).source_location if klass.respond_to?(:instance_method)
    inner && inner[0]
  rescue NameError
    nil
  end

  # minitest: a reporter receives every result.
  module Record
    def record(result)
      klass = result.respond_to?(:klass) ? result.klass : result.class.name
      location = result.respond_to?(:source_location) ? result.source_location : nil
      file = location && location[0] != 'unknown' ? location[0] : Mergemill.find_file(result.class, result.name)
      failure = result.failure
      status = if result.passed? then 'passed'
               elsif result.skipped? then 'skipped'
               else failure.is_a?(Minitest::UnexpectedError) ? 'error' : 'failed'
               end
      Mergemill.write(file, "#{klass}##{result.name}", status, failure && failure.message, result.time)
      super
    end
  end

  # test-unit: a test case runs with its result object.
  module Run
    def run(result)
      faults = result.faults.size
      count = result.run_count
      before = Time.now
      super
    ensure
      if result.run_count > count
        fault = result.faults[faults..-1].to_a.find { |f| !f.is_a?(Test::Unit::Notification) }
        status = case fault
                 when nil then 'passed'
                 when Test::Unit::Error then 'error'
                 when Test::Unit::Pending, Test::Unit::Omission then 'skipped'
                 else 'failed'
                 end
        label = data_label ? "#{method_name}[#{data_label}]" : method_name
        file = Mergemill.find_file(self.class, method_name)
        Mergemill.write(file, "#{self.class.name}##{label}", status, fault && fault.message, Time.now - before)
      end
    end
  end

  def self.hook
    if defined?(::Minitest::CompositeReporter) && ::Minitest::CompositeReporter.method_defined?(:record)
      ::Minitest::CompositeReporter.prepend(Record) unless ::Minitest::CompositeReporter.include?(Record)
      @found = true
    end
    if defined?(::Test::Unit::TestCase) && ::Test::Unit::TestCase.method_defined?(:run) && defined?(::Test::Unit::Error)
      ::Test::Unit::TestCase.prepend(Run) unless ::Test::Unit::TestCase.include?(Run)
      @found = true
    end
    @found
  end

  TRACE = TracePoint.new(:end) { TRACE.disable if %w[CompositeReporter TestCase].include?(_1.self.name.to_s[/\w+\z/]) && Mergemill.hook }
  TRACE.enable
end
