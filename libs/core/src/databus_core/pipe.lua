#!lua name=@LIBRARY@

-- The pipe's state: KEYS[1] is the generation's hash, KEYS[2] the stream. pipe.py describes the protocol.
-- The id of an entry in the stream is its number plus one, because Redis has no id 0-0. A missing entry shows as a gap.

local LOST = { err = 'LOST the generation is gone, is claimed by another reader, or lacks an entry' }

local function open(keys, args) -- args: token, start, published_to
  local published_to = args[3]
  if published_to == '0' then published_to = redis.call('HGET', keys[1], 'published_to') or '0' end -- another process knew
  redis.call('DEL', keys[1], keys[2])
  redis.call('HSET', keys[1], 'token', args[1], 'start', args[2], 'next', 0, 'appended', 0, 'taken', 0, 'largest', 0, 'published_to', published_to)
  return tonumber(published_to)
end

local function claim(keys, args) -- args: claim
  local generation = redis.call('HMGET', keys[1], 'token', 'start', 'claim')
  -- The same claim arrives twice if the client did not get the first answer and sent the request again.
  if not generation[1] or (generation[3] and generation[3] ~= args[1]) then return false end
  redis.call('HSET', keys[1], 'claim', args[1])
  return { generation[1], generation[2] }
end

local function retire(keys, args) -- args: token, or '' for any open generation
  local generation = redis.call('HMGET', keys[1], 'token', 'next', 'published_to')
  if generation[1] and (args[1] == '' or args[1] == generation[1]) then
    redis.call('DEL', keys[1], keys[2])
    redis.call('HSET', keys[1], 'published_to', generation[3] or '0') -- for the next publisher, which may start much later
    -- The publisher may be waiting for the next entry. This one is of no generation, so it notices at once.
    redis.call('XADD', keys[2], (tonumber(generation[2]) + 1) .. '-0', 'token', '', 'claim', '', 'payload', '')
  end
  return redis.status_reply('OK')
end

local function append(keys, args) -- args: token, claim, number, payload, read_to
  local generation = redis.call('HMGET', keys[1], 'token', 'claim', 'next', 'taken', 'appended', 'largest')
  if generation[1] ~= args[1] or generation[2] ~= args[2] or generation[3] ~= args[3] then return LOST end
  local following = tonumber(args[3]) + 1
  redis.call('XADD', keys[2], following .. '-0', 'token', args[1], 'claim', args[2], 'payload', args[4])
  local largest = #args[4]
  if generation[5] ~= generation[4] then -- the stream had other entries
    largest = math.max(largest, tonumber(generation[6]))
  end
  redis.call('HSET', keys[1], 'next', following, 'largest', largest, 'read_to', args[5])
  return redis.call('HINCRBY', keys[1], 'appended', #args[4]) - tonumber(generation[4])
end

local function backlog(keys, args) -- args: token, claim, read_to or '' if the reader has more to append before
  local generation = redis.call('HMGET', keys[1], 'token', 'claim', 'appended', 'taken')
  if generation[1] ~= args[1] or generation[2] ~= args[2] then return LOST end
  if args[3] ~= '' then redis.call('HSET', keys[1], 'read_to', args[3]) end
  return tonumber(generation[3]) - tonumber(generation[4])
end

-- args: token, number of the first entry to keep, bytes of all entries before it, published_to
local function trim(keys, args)
  if redis.call('HGET', keys[1], 'token') ~= args[1] then return LOST end
  redis.call('XTRIM', keys[2], 'MINID', '=', (tonumber(args[2]) + 1) .. '-0')
  redis.call('HSET', keys[1], 'taken', args[3], 'published_to', args[4])
  local generation = redis.call('HMGET', keys[1], 'largest', 'next', 'read_to')
  return { tonumber(generation[1]), tonumber(generation[2]), tonumber(generation[3] or 0) }
end

-- Redis runs these functions even when it is out of memory. They need little memory, and without them the publisher
-- could not trim the stream. Only `append` is refused then.
local function register(name, callback)
  redis.register_function { function_name = '@LIBRARY@_' .. name, callback = callback, flags = { 'allow-oom' } }
end
register('open', open)
register('claim', claim)
register('retire', retire)
register('backlog', backlog)
register('trim', trim)
redis.register_function('@LIBRARY@_append', append)
