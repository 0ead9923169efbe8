const SOURCE_OF = `
local function sourceOf(token)
  return string.match(token, '^(.*)%.') or ''
end
`;

const TELL = `
local function tell(token, message)
  local channel = channelOf(token)
  return channel and say(channel, message)
end
`;

/** How the process of a token is told something. */
export const TELLING = `
local guesses = false
${SOURCE_OF}
-- The channel of the token's process, if somebody listens there. PUBLISH counts those too who listen to everything, so NUMSUB
-- is asked.
local function channelOf(token)
  local source = string.match(token, '^(.*)%.')
  local channel = source and string.gsub(note, 'fence$', 'wake:') .. source
  return channel and redis.pcall('PUBSUB', 'NUMSUB', channel)[2] ~= 0 and channel
end

-- Answers whether somebody heard it. A user that may not PUBLISH is heard by nobody.
local function say(channel, message)
  return (tonumber(redis.pcall('PUBLISH', channel, message)) or 0) > 0
end
${TELL}`;

/**
 * The same in a cluster, where a message reaches the subscribers of all nodes, but a node knows only of its own: everybody may
 * have heard it.
 *
 * @param wake what the names of all wake channels begin with
 */
export const tellingInCluster = (wake: string): string => `
local guesses = true -- who has heard
${SOURCE_OF}
local function channelOf(token)
  local source = string.match(token, '^(.*)%.')
  return source and ${luaText(wake)} .. source
end

-- Answers 'maybe', if there was no error.
local function say(channel, message)
  return type(redis.pcall('PUBLISH', channel, message)) == 'number' and 'maybe'
end
${TELL}`;

/** A text as Lua reads it, whatever is in it. */
function luaText(text: string): string {
  const bytes = [...Buffer.from(text)].map((byte) =>
    /[\w:.-]/.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, '0')}`,
  );
  return `'${bytes.join('')}'`;
}
