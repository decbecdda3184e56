package token

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// checks are what token rules may name. A valid checksum proves a token. An invalid
// one proves nothing, unless it is required: the token may have been cut or edited.
var checks = map[string]check{
	"crc62":   {valid: hasCRC62},
	"crchex":  {valid: hasCRCHex},
	"crc16":   {valid: hasCRC16},
	"stellar": {valid: hasCRC16, required: true},
	"json":    {valid: hasSecretField, required: true},
	"none":    {},
	"random":  {},
}

type check struct {
	valid    func(token string) bool
	required bool
}

// hasCRC62 checks tokens of GitHub and npm: the last six bytes are the CRC-32 of
// what is between them and the prefix, in base 62.
func hasCRC62(token string) bool {
	const alphabet, size = lex.Digits + lex.Uppers + lex.Lowers, 6
	_, body, ok := strings.Cut(token, "_")
	if !ok || len(body) <= size {
		return false
	}
	body, sum := body[:len(body)-size], body[len(body)-size:]
	n := crc32.ChecksumIEEE([]byte(body))
	for i := size - 1; i >= 0; i-- {
		if sum[i] != alphabet[n%62] {
			return false
		}
		n /= 62
	}
	return n == 0
}

// hasCRCHex checks tokens of Grafana: after the last _, the CRC-32 of what is before it.
func hasCRCHex(token string) bool {
	i := strings.LastIndexByte(token, '_')
	return i > 0 && token[i+1:] == fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(token[:i])))
}

// hasCRC16 checks seeds of NATS keys: base32 that ends in the CRC-16 (XMODEM) of
// the bytes before it.
func hasCRC16(token string) bool {
	data, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(token)
	if err != nil || len(data) < 3 {
		return false
	}
	var sum uint16
	for _, b := range data[:len(data)-2] {
		sum ^= uint16(b) << 8
		for range 8 {
			carry := sum & 0x8000
			if sum <<= 1; carry != 0 {
				sum ^= 0x1021
			}
		}
	}
	return binary.LittleEndian.Uint16(data[len(data)-2:]) == sum
}

// hasSecretField reports whether base64 text holds JSON with a field of a secret.
func hasSecretField(s string) bool {
	s = strings.TrimRight(s, "=")
	data, err := base64.RawStdEncoding.DecodeString(s[:len(s)&^3])
	if err != nil {
		data, err = base64.RawURLEncoding.DecodeString(s[:len(s)&^3])
	}
	if err != nil {
		return false
	}
	return lex.ContainsAny(strings.ToLower(string(data)), judge.Heads("secretfield"))
}
