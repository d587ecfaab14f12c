#!lua name=@LIBRARY@

-- The pipe's state: KEYS[1] is the generation's hash, KEYS[2] the stream. What each step means: pipe.py.
-- An entry's number is its stream id less one, so a reader of the stream sees holes in the ids.

local function open(keys, args) -- token, start
  redis.call('DEL', keys[1], keys[2])
  redis.call('HSET', keys[1], 'token', args[1], 'start', args[2], 'next', 0, 'bytes', 0)
  return redis.status_reply('OK')
end

local function claim(keys, args) -- claim
  local generation = redis.call('HMGET', keys[1], 'token', 'start', 'claim')
  -- The same claim again is the client's retry after a lost answer.
  if not generation[1] or (generation[3] and generation[3] ~= args[1]) then return false end
  redis.call('HSET', keys[1], 'claim', args[1])
  return { generation[1], generation[2] }
end

local function append(keys, args) -- token, claim, number, payload
  local generation = redis.call('HMGET', keys[1], 'token', 'claim', 'next')
  if generation[1] ~= args[1] or generation[2] ~= args[2] or generation[3] ~= args[3] then
    return redis.error_reply('LOST the generation is gone or claimed by another')
  end
  local following = tonumber(args[3]) + 1
  redis.call('XADD', keys[2], following .. '-0', 'token', args[1], 'claim', args[2], 'payload', args[4])
  redis.call('HSET', keys[1], 'next', following)
  return redis.call('HINCRBY', keys[1], 'bytes', #args[4])
end

local function backlog(keys, args) -- token, claim
  local generation = redis.call('HMGET', keys[1], 'token', 'claim', 'bytes')
  if generation[1] ~= args[1] or generation[2] ~= args[2] then
    return redis.error_reply('LOST the generation is gone or claimed by another')
  end
  return tonumber(generation[3])
end

local function trim(keys, args) -- token, number of the first entry to keep, change of the bytes
  if redis.call('HGET', keys[1], 'token') ~= args[1] then
    return redis.error_reply('LOST the generation is gone')
  end
  redis.call('XTRIM', keys[2], 'MINID', '=', (tonumber(args[2]) + 1) .. '-0')
  return redis.call('HINCRBY', keys[1], 'bytes', args[3])
end

redis.register_function('@LIBRARY@_open', open)
redis.register_function('@LIBRARY@_claim', claim)
redis.register_function('@LIBRARY@_append', append)
redis.register_function('@LIBRARY@_backlog', backlog)
redis.register_function('@LIBRARY@_trim', trim)
