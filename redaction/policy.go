package redaction

import (
	"net/netip"
	"strings"
)

// This file has what is masked only if the policy asks for it (security 9.5.2:
// email addresses, internal hosts, internal IP addresses).

// email masks the address around the @ at at.
func (d *detector) email(_, at, _ int) {
	begin := runBack(d.s, at, &mailSet, 64)
	end := run(d.s, at+1, &hostSet, 255)
	for end > at && !isAlnum(d.s[end-1]) {
		end--
	}
	dot := strings.LastIndexByte(d.s[at:max(at, end)], '.')
	if begin == at || dot < 2 || end-at-dot-1 < 2 || shapeOf(d.s[at+dot+1:end]).digit > 0 {
		return
	}
	d.report("email", "policy", begin, end)
}

// host masks the name that ends in the internal suffix s[begin:end].
func (d *detector) host(_, begin, end int) {
	if continuesWord(d.s, end) || end+1 < len(d.s) && d.s[end] == '.' && isAlnum(d.s[end+1]) || begin > 0 && isAlnum(d.s[begin-1]) {
		return
	}
	d.report("internal-host", "policy", runBack(d.s, begin, &hostSet, 255), end)
}

// internalIPs masks addresses of private networks.
func (d *detector) internalIPs() {
	for i := 0; i < len(d.s); i++ {
		if !hexSet.has(d.s[i]) && d.s[i] != ':' {
			continue
		}
		end := run(d.s, i, &ipSet, 64)
		if end-i >= len("::1") {
			text := strings.TrimRight(d.s[i:end], ".:")
			if host, _, ok := strings.Cut(text, ":"); ok && strings.Count(text, ":") == 1 {
				text = host
			}
			addr, err := netip.ParseAddr(text)
			internal := err == nil && (addr.IsPrivate() || addr.IsLinkLocalUnicast())
			if internal && (i == 0 || !isAlnum(d.s[i-1]) && d.s[i-1] != '.') && i >= d.placeholderEnd {
				d.report("internal-ip", "policy", i, i+len(text))
			}
		}
		i = end
	}
}
