-- Writes every test of busted as a JSON line for mergemill to the file that MERGEMILL_OUT names, and prints as busted does.
local escapes = { ['"'] = '\\"', ['\\'] = '\\\\' }

local function quote(text)
  text = tostring(text):sub(1, 2000):gsub('[%c"\\\127-\255]', function(c)
    return escapes[c] or (c:byte() < 32 and ('\\u%04x'):format(c:byte())) or c
  end)
  return '"' .. text .. '"'
end

local statuses = { success = 'passed', failure = 'failed', error = 'error', pending = 'skipped' }

return function(options)
  local busted = require 'busted'
  local handler = require 'busted.outputHandlers.base'()
  local console = require 'busted.outputHandlers.plainTerminal'(options)
  local out = assert(io.open(assert(os.getenv('MERGEMILL_OUT')), 'a'))
  local messages = {}

  local function describe(message)
    if type(message) == 'table' then message = message.message or tostring(message) end
    return message and tostring(message) or ''
  end

  local function find_file(element)
    while element and element.descriptor ~= 'file' do element = busted.parent(element) end
    return element and element.name or ''
  end

  local function find_process()
    local file = io.open('/proc/self/stat')
    local number = file and file:read('*n')
    if file then file:close() end
    return number
  end
  local process = find_process()

  local function write(fields)
    if find_process() ~= process then return end -- a child that a test forked runs to the end, too
    out:write('{', table.concat(fields, ','), '}\n')
    out:flush()
  end

  local function write_test(element, status, message, seconds)
    write({
      '"file":' .. quote(find_file(element)), '"name":' .. quote(handler.getFullName(element)),
      '"status":' .. quote(status), '"message":' .. quote(message), ('"seconds":%.6f'):format(seconds or 0),
    })
  end

  local function keep_message(element, _, message)
    messages[tostring(element)] = describe(message)
    return nil, true
  end

  local function end_test(element, _, status)
    write_test(element, statuses[status] or 'error', messages[tostring(element)] or '', element.duration)
    return nil, true
  end

  -- Anything else that fails is a file that could not be loaded, or a block whose preparation failed.
  local function end_other(element, _, message)
    if element.descriptor == 'file' then
      write({ '"file":' .. quote(element.name), '"uncollected":' .. quote(describe(message)) })
    elseif element.descriptor ~= 'it' and find_file(element) ~= '' then
      write_test(element, 'error', describe(message))
    end
    return nil, true
  end

  return {
    subscribe = function(_, settings)
      console:subscribe(settings)
      busted.subscribe({ 'pending' }, keep_message)
      busted.subscribe({ 'failure', 'it' }, keep_message)
      busted.subscribe({ 'error', 'it' }, keep_message)
      busted.subscribe({ 'test', 'end' }, end_test)
      busted.subscribe({ 'failure' }, end_other)
      busted.subscribe({ 'error' }, end_other)
    end,
  }
end
