local function sourceOf(token)
  return string.match(token, '^(.*)%.') or ''
end
