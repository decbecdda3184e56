package redaction

import (
	"net/netip"
	"strings"
	"unicode"
)

// uri masks the password, or the token, in the URI whose "://" is s[at:begin].
func (d *detector) uri(_, at, begin int) {
	if begin < d.uriEnd || runBack(d.s, at, &schemeSet, 24) == at {
		return
	}
	end := begin
	for end < len(d.s) && end-begin < maxURI && (uriSet.has(d.s[end]) || d.s[end] == '<' && end > begin && d.s[end-1] == ':') {
		end++
	}
	d.uriEnd = end
	authority := d.s[begin:end]
	if i := strings.Index(authority, "://"); i > 0 {
		authority = authority[:i]
	}
	if i := strings.IndexByte(authority, ','); i > 0 && strings.IndexByte(authority[:i], '@') > 0 {
		authority = authority[:i]
		d.uriEnd = begin + i
	}
	userinfo, ok := userinfoOf(authority)
	if !ok {
		return
	}
	user, password, _ := cutUser(userinfo)
	if password == "" { // a userinfo without a password can be a token
		if isVeryRandom(user) || len(user) >= 32 && isRandom(user) {
			d.report("uri-token", "uri user", begin, begin+len(user))
		}
		return
	}
	if isDummyPassword(password) {
		return
	}
	start := begin + len(user) + 1
	d.report("uri-password", "uri", start, start+len(password))
	if !d.contextFree && len(user) > 2 && !isPlaceholder(user) && !isReference(user) {
		d.report("uri-user", "uri", begin, begin+len(user))
	}
}

// cutUser cuts a userinfo at the first colon that is not part of a placeholder.
func cutUser(userinfo string) (user, password string, ok bool) {
	for i := 0; i < len(userinfo); i++ {
		if n := placeholderLen(userinfo[i:]); n > 0 {
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
	if colon < 0 || at < path || colon+1 < len(authority) && isPort(authority[colon+1:path]) || at+1 >= len(authority) || !isAlnum(authority[at+1]) {
		return "", false
	}
	if strings.ContainsAny(authority[path:at], "=&") || strings.Count(authority[path:at], "/") > 2 {
		return "", false
	}
	return authority[:at], true
}

// isPort reports whether s, after a host and a colon, is a port or a variable.
func isPort(s string) bool {
	return s == "" || allIn(s, &digitSet) || strings.ContainsAny(s[:1], "$%{<:*")
}

// isDummyPassword reports whether the password of a URI is not a real one.
func isDummyPassword(s string) bool {
	return isPlaceholder(s) && len(s) > 2 || isReference(s) || beginsWith(s, heads["filledin"]) || strings.HasPrefix(s, "$") && isIdentifier(s[1:]) ||
		lists["dummy"][strings.ToLower(s)] || len(s) > 8 && isCommonWords(s, 0)
}

// oracle masks the password of user/password@host, which begins at begin.
func (d *detector) oracle(_, _, begin int) {
	text := d.s[begin:min(len(d.s), begin+128)]
	text, _, ok := strings.Cut(text, "@")
	user, password, both := strings.Cut(text, "/")
	if ok && both && strings.IndexFunc(text, unicode.IsSpace) < 0 && !isDummyPassword(password) {
		start := begin + len(user) + 1
		d.report("uri-password", "oracle connection", start, start+len(password))
	}
}

// pgpass masks the last field of host:port:database:user:password, with the port at begin.
func (d *detector) pgpass(_, begin, end int) {
	line := d.s[end:lineEndWithin(d.s, end, maxURI)]
	if line == "" {
		return
	}
	fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
	host := runBack(d.s, begin, &hostSet, 255)
	if host == begin && begin > 0 && d.s[begin-1] == '*' {
		host--
	}
	switch {
	case len(fields) < 3, allIn(fields[2], &shadowSet), isDummyPassword(fields[2]),
		host > 0 && d.s[host-1] != '\n' && d.s[host-1] != ' ', strings.ContainsAny(line[:len(line)-1], " /\"'"):
		return
	}
	start := end + len(fields[0]) + len(fields[1]) + 2
	d.report("password", "line of a pgpass file", start, start+len(fields[2]))
}

// saslPasswd masks the password after host and port in a line of Postfix's sasl_passwd.
func (d *detector) saslPasswd(_, _, at int) {
	at = skipBlanks(d.s, at)
	end := run(d.s, at, &notBlank, maxURI)
	user, password, ok := strings.Cut(d.s[at:end], ":")
	if ok && user != "" && !isDummyPassword(password) {
		d.report("password", "line of sasl_passwd", at+len(user)+1, end)
	}
}

// userinfo masks the password of user:password@host. The @ is at at.
func (d *detector) userinfo(_, at, _ int) {
	if d.contextFree || !continuesWord(d.s, at+1) {
		return
	}
	begin := runBack(d.s, at, &userinfoSet, maxName)
	user, password, ok := strings.Cut(d.s[begin:at], ":")
	if !ok || user == "" || lists["mailto"][strings.ToLower(user)] || !allIn(user, &identSet) || len(password) < 6 || !isRandom(password) || !isArgument(password) {
		return
	}
	end := run(d.s, at+1, &hostSet, 255)
	host := strings.TrimRight(d.s[at+1:end], ".")
	port := run(d.s, min(end+1, len(d.s)), &digitSet, 6) - end - 1
	if port = max(port, 0); end < len(d.s) && d.s[end] != ':' || port < 2 || port > 5 || continuesWord(d.s, end+1+port) {
		port = 0
	}
	if countIn(host, &letterSet) > 0 && (strings.Contains(host, ".") || port > 0) || strings.Count(host, ".") == 3 {
		d.report("uri-password", "user and password of a host", at-len(password), at)
	}
}

// windowsHashes masks the hashes of user:id:hash:hash::: that end at at.
func (d *detector) windowsHashes(_, at, _ int) {
	begin := at - 65
	if !d.contextFree && begin > 0 && d.s[begin-1] == ':' && d.s[begin+32] == ':' && allIn(d.s[begin:begin+32]+d.s[begin+33:at], &hexSet) {
		d.report("password", "hashes of Windows", begin, at)
	}
}

// dsn masks the password in a MySQL data source name, user:password@tcp(host).
func (d *detector) dsn(_, at, _ int) {
	begin := runBack(d.s, at, &uriSet, 128)
	_, password, ok := strings.Cut(d.s[begin:at], ":")
	if ok && !isDummyPassword(password) {
		d.report("uri-password", "data source name", at-len(password), at)
	}
}

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
