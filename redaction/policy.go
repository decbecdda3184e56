package redaction

import (
	"net/netip"
	"strings"
)

// What is masked only where policy asks for it (security 9.5.2).

var (
	mailSet = setOf(digits, letters, "._%+-")
	hostSet = setOf(digits, letters, ".-")
	ipSet   = setOf(digits, "abcdefABCDEF", ".:")
)

// mail masks the address around the @ at at.
func (d *detector) mail(at int) {
	begin := runBack(d.s, at, &mailSet, 64)
	end := run(d.s, at+1, &hostSet, 255)
	for end > at && !isAlnum(d.s[end-1]) {
		end--
	}
	dot := strings.LastIndexByte(d.s[at:max(at, end)], '.')
	if begin == at || dot < 2 || end-at-dot-1 < 2 || shapeOf(d.s[at+dot+1:end]).digit > 0 {
		return
	}
	d.found("email", "policy", begin, end)
}

// host masks the name that ends in the internal suffix s[begin:end].
func (d *detector) host(begin, end int) {
	if continues(d.s, end) || end+1 < len(d.s) && d.s[end] == '.' && isAlnum(d.s[end+1]) || begin > 0 && isAlnum(d.s[begin-1]) {
		return
	}
	d.found("internal-host", "policy", runBack(d.s, begin, &hostSet, 255), end)
}

// internalIPs masks addresses of private networks.
func (d *detector) internalIPs() {
	for i := 0; i < len(d.s); i++ {
		if !hexSet.has(d.s[i]) && d.s[i] != ':' {
			continue
		}
		end := run(d.s, i, &ipSet, 64)
		if end-i < len("::1") {
			i = end
			continue
		}
		text := strings.TrimRight(d.s[i:end], ".:")
		if host, _, ok := strings.Cut(text, ":"); ok && strings.Count(text, ":") == 1 {
			text = host
		}
		if addr, err := netip.ParseAddr(text); err == nil && (addr.IsPrivate() || addr.IsLinkLocalUnicast()) && (i == 0 || !isAlnum(d.s[i-1]) && d.s[i-1] != '.') && i >= d.after {
			d.found("internal-ip", "policy", i, i+len(text))
		}
		i = end
	}
}
