# JSON documents as a string's inside. Usual are valid ones without \u, of at most 64 levels.

cdef enum:
    DEEPEST = 64


cdef inline const char* behind_space(const char* i) noexcept:
    while i[0] == 0x20 or i[0] == 0x0A or i[0] == 0x0D or i[0] == 0x09:
        i += 1
    return i


cdef inline const char* behind_digits(const char* i) noexcept:
    """Return what is behind some digits, of which there must be one; NULL if not."""
    if not 0x30 <= i[0] <= 0x39:
        return NULL
    while 0x30 <= i[0] <= 0x39:
        i += 1
    return i


cdef const char* behind_number(const char* i) noexcept:
    if i[0] == 0x2D:
        i += 1
    i = i + 1 if i[0] == 0x30 else behind_digits(i)
    if i != NULL and i[0] == 0x2E:
        i = behind_digits(i + 1)
    if i != NULL and (i[0] == 0x65 or i[0] == 0x45):
        i += 1
        if i[0] == 0x2B or i[0] == 0x2D:
            i += 1
        i = behind_digits(i)
    return i


cdef const char* behind_string(const char* i) noexcept:
    if i[0] != 0x22:
        return NULL
    i += 1
    while i[0] != 0x22:
        if 0 <= i[0] < 0x20:  # the zero byte behind the text, too
            return NULL
        if i[0] == 0x5C:
            i += 1
            if strchr(b'"\\/bfnrt', i[0]) == NULL or i[0] == 0:
                return NULL
        i += 1
    return i + 1


cdef const char* behind_name(const char* i) noexcept:
    """Return what is behind a member's name and colon."""
    i = behind_string(behind_space(i))
    if i == NULL:
        return NULL
    i = behind_space(i)
    return i + 1 if i[0] == 0x3A else NULL


cdef const char* behind_scalar(const char* i) noexcept:
    if i[0] == 0x22:
        return behind_string(i)
    if strncmp(i, b"true", 4) == 0 or strncmp(i, b"null", 4) == 0:
        return i + 4
    return i + 5 if strncmp(i, b"false", 5) == 0 else behind_number(i)


cdef bint is_usual_json(const char* i, const char* end) noexcept:
    """Tell whether text, which has a zero byte behind it, is a document that can be written."""
    cdef uint8_t closings[DEEPEST]  # of the objects and arrays around
    cdef int depth = 0
    while True:
        i = behind_space(i)
        if i[0] == 0x7B or i[0] == 0x5B:
            if depth == DEEPEST:
                return False
            closings[depth] = i[0] + 2
            depth += 1
            i = behind_space(i + 1)
            if i[0] != closings[depth - 1]:
                if closings[depth - 1] == 0x7D:
                    i = behind_name(i)
                    if i == NULL:
                        return False
                continue
        else:
            i = behind_scalar(i)
            if i == NULL:
                return False
            i = behind_space(i)
        while depth and i[0] == closings[depth - 1]:
            depth -= 1
            i = behind_space(i + 1)
        if depth == 0:
            return i == end
        if i[0] != 0x2C:
            return False
        i += 1
        if closings[depth - 1] == 0x7D:
            i = behind_name(i)
            if i == NULL:
                return False


cdef char* put_compact(const uint8_t* i, size_t size, char* o) noexcept:
    """Write a usual document without white space between its tokens, and eight bytes; each byte takes one or two."""
    cdef const uint8_t* end = i + size
    cdef bint within = False
    while i < end:
        memcpy(o, &escaped[i[0]], 8)
        if within or i[0] > 0x20:
            o += escaped_sizes[i[0]]
        if i[0] == 0x22:
            within = not within
        elif i[0] == 0x5C:
            i += 1
            memcpy(o, &escaped[i[0]], 8)
            o += escaped_sizes[i[0]]
        i += 1
    return o
