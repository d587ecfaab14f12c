# JSON as a diff from the image before (PARTIAL_UPDATE_ROWS): sql/rpl_record.cc and sql/json_diff.cc in MySQL's source.

cdef bint json_diffs(RowImages* rows, const uint8_t** p, const uint8_t* end, const uint8_t** diffs) noexcept:
    """Read an after image's options: bit 0 says that a bitmap of the table's JSON columns follows, those with diffs."""
    cdef uint32_t size = (rows.json_columns + 7) // 8
    if p[0] == end or p[0][0] > 1:  # no other option is defined
        return False
    p[0] += 1
    if (p[0] - 1)[0] == 1:
        if end - p[0] < size:
            return False
        diffs[0] = p[0]
        p[0] += size
    return True


cdef Fault write_json_diff(RowImages* rows, uint32_t i, const uint8_t** p, const uint8_t* end, Buffer* out) except RAISED:
    """Write the JSON text that the diffs make of the one before; no diffs at all leave it as it is."""
    cdef const size_t* before = <const size_t*> rows.json.data + 2 * i
    cdef size_t size, new_size
    cdef Fault fault = sized(&rows.columns[i], p, end, &size)
    cdef const char* new
    if fault != NONE:
        return fault
    if before[0] == 0:
        return NO_IMAGE_BEFORE
    text = None
    if size:
        try:
            text = apply_diffs(
                out.data[before[0]:before[0] + before[1]], PyBytes_FromStringAndSize(<const char*> p[0] - size, size),
                json_text,
            )
        except (ValueError, LookupError):
            return BAD_DIFF
    new_size = before[1] if text is None else len(text)
    if room(out, 5 + new_size) == NULL:
        return NO_MEMORY
    new = out.data + before[0] if text is None else PyBytes_AS_STRING(text)
    out.size = put_bin(out.data + out.size, new_size) - out.data
    memcpy(out.data + out.size, new, new_size)
    out.size += new_size
    return NONE
