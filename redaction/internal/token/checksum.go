package token

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// checks are what token rules may name.
var checks = map[string]func(token string) bool{"stellar": hasCRC16, "json": hasSecretField, "none": nil, "random": nil}

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
	data, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(s[:len(s)&^3]))
	if err != nil {
		return false
	}
	return lex.ContainsAny(strings.ToLower(string(data)), judge.Heads("secretfield"))
}
