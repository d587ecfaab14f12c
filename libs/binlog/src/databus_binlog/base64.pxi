# Bytes in base64, written where there is room for it.

cdef const char* DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

#: two digits for each twelve bits
cdef char pairs[8192]
for _bits in range(4096):
    pairs[2 * _bits] = DIGITS[_bits >> 6]
    pairs[2 * _bits + 1] = DIGITS[_bits & 63]


cdef inline char* put_base64(const uint8_t* i, Py_ssize_t left, char* o) noexcept:
    """Write four digits for each three bytes, begun ones count; what is returned is behind them."""
    cdef unsigned int bits
    while left >= 3:
        bits = i[0] << 16 | i[1] << 8 | i[2]
        memcpy(o, pairs + 2 * (bits >> 12), 2)
        memcpy(o + 2, pairs + 2 * (bits & 4095), 2)
        i += 3
        o += 4
        left -= 3
    if left:
        bits = i[0] << 16 | (i[1] << 8 if left == 2 else 0)
        memcpy(o, pairs + 2 * (bits >> 12), 2)
        o[2] = DIGITS[bits >> 6 & 63] if left == 2 else b"="
        o[3] = b"="
        o += 4
    return o
