package redaction

import (
	"net/netip"
	"strings"
	"unicode"
)

// This file masks what has a fixed place beside a mark: user and password of URIs,
// lines of password files, and what only the policy masks.

// uri masks the password, or the token, in the URI whose "://" is s[at:begin].
func (d *detector) uri(_, at, begin int) {
	if begin < d.uriEnd || runBack(d.s, at, &schemeSet, 24) == at {
		return
	}
	userinfo, ok := userinfoOf(d.authorityAt(begin))
	if !ok {
		return
	}
	user, password, _ := d.cutUser(userinfo)
	if password == "" { // a userinfo without a password can be a token
		if isVeryRandom(user) || len(user) >= 32 && isRandom(user) {
			d.report("uri-token", "uri user", begin, begin+len(user))
		}
		return
	}
	if d.isDummyPassword(password) {
		return
	}
	start := begin + len(user) + 1
	d.report("uri-password", "uri", start, start+len(password))
	if !d.contextFree && len(user) > 2 && !d.isPlaceholder(user) && !isReference(user) {
		d.report("uri-user", "uri", begin, begin+len(user))
	}
}

// authorityAt returns the authority at begin with what follows it, up to another
// URI or, in a list of hosts, a comma.
func (d *detector) authorityAt(begin int) string {
	end := run(d.s, begin, &uriSet, maxURI)
	d.uriEnd = end
	authority, _, _ := strings.Cut(d.s[begin:end], "://")
	if i := strings.IndexByte(authority, ','); i > 0 && strings.IndexByte(authority[:i], '@') > 0 {
		authority = authority[:i]
		d.uriEnd = begin + i
	}
	return authority
}

// cutUser cuts a userinfo at the first colon that is not part of a placeholder.
func (rs *ruleset) cutUser(userinfo string) (user, password string, ok bool) {
	for i := 0; i < len(userinfo); i++ {
		if n := rs.placeholderLen(userinfo[i:]); n > 0 {
			i += n - 1
		} else if userinfo[i] == ':' {
			return userinfo[:i], userinfo[i+1:], true
		}
	}
	return userinfo, "", false
}

// userinfoOf returns the userinfo of an authority and what follows it. A password
// may hold any byte but @, so the last @ before the path counts. An @ in the path
// counts only if the text before it cannot be a host.
func userinfoOf(authority string) (string, bool) {
	path := strings.IndexAny(authority, "/?#")
	if path < 0 {
		path = len(authority)
	}
	if at := strings.LastIndexByte(authority[:path], '@'); at > 0 {
		return authority[:at], true
	}
	colon := strings.IndexByte(authority[:path], ':')
	at := strings.LastIndexByte(authority, '@')
	if colon < 0 || at < path || isPort(authority[colon+1:path]) || !isAlnum(byteAt(authority, at+1)) ||
		strings.ContainsAny(authority[path:at], "=&") || strings.Count(authority[path:at], "/") > 2 {
		return "", false
	}
	return authority[:at], true
}

// isPort reports whether s, after a host and a colon, is a port or a variable.
func isPort(s string) bool {
	return s == "" || allIn(s, &digitSet) || strings.IndexByte("$%{<:*", s[0]) >= 0
}

// isDummyPassword reports whether the password of a URI is not a real one.
func (rs *ruleset) isDummyPassword(s string) bool {
	return rs.isPlaceholder(s) && len(s) > 2 || isReference(s) || beginsWith(s, heads["filledin"]) || strings.HasPrefix(s, "$") && isIdentifier(s[1:]) ||
		lists["dummy"][strings.ToLower(s)] || len(s) > 8 && isCommonWords(s, 0)
}

// reportAfter masks s[at:end] without its prefix up to mark, the user.
func (d *detector) reportAfter(mark, class, rule string, at, end int) {
	user, password, ok := strings.Cut(d.s[at:end], mark)
	if ok && user != "" && !d.isDummyPassword(password) {
		d.report(class, rule, at+len(user)+len(mark), end)
	}
}

// oracle masks the password of user/password@host, which begins at begin.
func (d *detector) oracle(_, _, begin int) {
	text, _, ok := strings.Cut(d.s[begin:min(len(d.s), begin+128)], "@")
	if ok && strings.IndexFunc(text, unicode.IsSpace) < 0 {
		d.reportAfter("/", "uri-password", "oracle connection", begin, begin+len(text))
	}
}

// dsn masks the password in a MySQL data source name, user:password@tcp(host).
func (d *detector) dsn(_, at, _ int) {
	d.reportAfter(":", "uri-password", "data source name", runBack(d.s, at, &uriSet, 128), at)
}

// pgpass masks the last field of host:port:database:user:password, with the port at begin.
func (d *detector) pgpass(_, begin, end int) {
	line := strings.TrimSpace(d.s[end:lineEndWithin(d.s, end, maxURI)])
	fields := strings.SplitN(line, ":", 3)
	host := runBack(d.s, begin, &pgHostSet, 255)
	if len(fields) < 3 || allIn(fields[2], &shadowSet) || strings.ContainsAny(line, " /\"'") || strings.IndexByte("\x00\n ", byteAt(d.s, host-1)) < 0 {
		return
	}
	d.reportAfter(":", "password", "line of a pgpass file", end+len(fields[0])+1, end+len(line))
}

// userinfo masks the password of user:password@host, where the host has a domain or a
// port. The @ is at at.
func (d *detector) userinfo(_, at, _ int) {
	begin := runBack(d.s, at, &userinfoSet, maxName)
	user, password, _ := strings.Cut(d.s[begin:at], ":")
	end := run(d.s, at+1, &hostSet, 255)
	if end == at+1 || len(password) < 6 || user == "" || lists["mailto"][strings.ToLower(user)] || !allIn(user, &identSet) || !isRandom(password) || isSource(password) {
		return
	}
	if strings.Contains(d.s[at:end-1], ".") || byteAt(d.s, end) == ':' && isDigit(byteAt(d.s, end+1)) {
		d.report("uri-password", "user and password of a host", at-len(password), at)
	}
}

// email masks the address around the @ at at (security 9.5.2).
func (d *detector) email(_, at, _ int) {
	begin, end := runBack(d.s, at, &mailSet, 64), run(d.s, at+1, &hostSet, 255)
	host := strings.TrimRight(d.s[at+1:end], ".-")
	dot := strings.LastIndexByte(host, '.')
	if begin < at && dot > 0 && len(host)-dot > 2 && allIn(host[dot+1:], &letterSet) {
		d.report("email", "policy", begin, at+1+len(host))
	}
}

// host masks the name that ends in the internal suffix s[begin:end].
func (d *detector) host(_, begin, end int) {
	if !continuesWord(d.s, end) && !(byteAt(d.s, end) == '.' && isAlnum(byteAt(d.s, end+1))) && !isAlnum(byteAt(d.s, begin-1)) {
		d.report("internal-host", "policy", runBack(d.s, begin, &hostSet, 255), end)
	}
}

// privateNets are how addresses of private networks begin, which internalIP masks.
var privateNets = []string{"10.", "172.", "192.168.", "169.254.", "fc", "fd", "fe8", "fe9", "fea", "feb"}

// internalIP masks the address of a private network that begins at i.
func (d *detector) internalIP(_, i, _ int) {
	if before := byteAt(d.s, i-1); isAlnum(before) || before == '.' || before == ':' {
		return
	}
	text := strings.TrimRight(d.s[i:run(d.s, i, &ipSet, 64)], ".:")
	if host, port, ok := strings.Cut(text, ":"); ok && strings.IndexByte(port, ':') < 0 {
		text = host
	}
	if addr, err := netip.ParseAddr(text); err == nil && (addr.IsPrivate() || addr.IsLinkLocalUnicast()) {
		d.report("internal-ip", "policy", i, i+len(text))
	}
}
