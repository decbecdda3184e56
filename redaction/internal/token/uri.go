package token

import (
	"net/netip"
	"regexp"
	"strings"
	"unicode"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// This file masks what has a fixed place beside a mark: user and password of URIs,
// lines of password files, and what only the policy masks.

// uri masks the password, or the token, in the URI whose "://" is s[at:begin].
func uri(c *scan, at, begin int) {
	if begin < c.uriEnd || lex.RunBack(c.s, at, &schemeSet, 24) == at {
		return
	}
	c.uriEnd = lex.Run(c.s, begin, &uriSet, 512)
	authority, _, _ := strings.Cut(c.s[begin:c.uriEnd], "://")
	if i := strings.IndexByte(authority, ','); i > 0 && strings.IndexByte(authority[:i], '@') > 0 { // a list of hosts
		authority = authority[:i]
		c.uriEnd = begin + i
	}
	if strings.IndexByte(authority, '@') < 0 {
		return
	}
	m := userinfoForm.FindStringSubmatch(authority)
	if m == nil {
		return
	}
	userinfo := m[1] + m[2]
	colon := 0 // the first one that is not part of a placeholder
	for colon < len(userinfo) && userinfo[colon] != ':' {
		colon += max(1, c.Names.PlaceholderLen(userinfo[colon:]))
	}
	user, password := userinfo[:colon], strings.TrimPrefix(userinfo[colon:], ":")
	switch {
	case password == "": // a userinfo without a password can be a token
		if judge.IsVeryRandom(user) || len(user) >= 32 && judge.IsRandom(user) {
			c.report("uri-token", "uri user", "", begin, begin+len(user))
		}
	case !c.isDummyPassword(password):
		start := begin + len(user) + 1
		c.report("uri-password", "uri", "", start, start+len(password))
		if !c.contextFree && len(user) > 2 && !c.Names.IsPlaceholder(user) && !judge.IsReference(user) {
			c.report("uri-user", "uri", "", begin, begin+len(user))
		}
	}
}

// userinfoForm matches the userinfo of an authority. The last @ before the path counts. A password may also
// hold the marks of a path: the last @ behind the first / ? or # counts if what is between the colon and that mark
// is neither a port nor a variable, at most one more / follows, and a host is behind the @.
var userinfoForm = regexp.MustCompile(`^(?:([^/?#]*)@|([^:/?#@]*:(?:[0-9]+[^0-9/?#@]|[^0-9$%{<:*/?#@])[^/?#@]*[/?#][^=&/]*(?:/[^=&/]*)?)@[0-9A-Za-z])`)

// isDummyPassword reports whether the password of a URI is not a real one.
func (r *Rules) isDummyPassword(s string) bool {
	return r.Names.IsPlaceholder(s) && len(s) > 2 || judge.IsReference(s) || lex.BeginsWith(s, judge.Heads("filledin")) || judge.Words("dummy")[strings.ToLower(s)] ||
		len(s) > 8 && judge.IsCommonWords(s, 0)
}

// reportAfter masks s[at:end] without its prefix up to mark, the user.
func (c *scan) reportAfter(mark, class, rule string, at, end int) {
	user, password, ok := strings.Cut(c.s[at:end], mark)
	if ok && user != "" && !c.isDummyPassword(password) {
		c.report(class, rule, "", at+len(user)+len(mark), end)
	}
}

// oracle masks the password of user/password@host, which begins at begin.
func oracle(c *scan, _, begin int) {
	text, _, ok := strings.Cut(c.s[begin:min(len(c.s), begin+128)], "@")
	if ok && strings.IndexFunc(text, unicode.IsSpace) < 0 {
		c.reportAfter("/", "uri-password", "oracle connection", begin, begin+len(text))
	}
}

// dsn masks the password in a MySQL data source name, user:password@tcp(host).
func dsn(c *scan, at, _ int) {
	c.reportAfter(":", "uri-password", "data source name", lex.RunBack(c.s, at, &uriSet, 128), at)
}

// pgpass masks the last field of host:port:database:user:password, with the port at begin.
func pgpass(c *scan, begin, end int) {
	line := strings.TrimSpace(c.s[end:lex.LineEndWithin(c.s, end, 512)])
	fields := strings.SplitN(line, ":", 3)
	host := lex.RunBack(c.s, begin, &pgHostSet, 255)
	if len(fields) < 3 || lex.AllIn(fields[2], &shadowSet) || strings.ContainsAny(line, " /\"'") || strings.IndexByte("\x00\n ", lex.ByteAt(c.s, host-1)) < 0 {
		return
	}
	c.reportAfter(":", "password", "line of a pgpass file", end+len(fields[0])+1, end+len(line))
}

// userinfo masks the password of user:password@host, where the host has a domain or a
// port. The @ is at at.
func userinfo(c *scan, at, _ int) {
	begin := lex.RunBack(c.s, at, &userinfoSet, 64)
	user, password, _ := strings.Cut(c.s[begin:at], ":")
	end := lex.Run(c.s, at+1, &hostSet, 255)
	if end == at+1 || len(password) < 6 || user == "" || judge.Words("mailto")[strings.ToLower(user)] || !lex.AllIn(user, &lex.IdentSet) || !judge.IsRandom(password) || judge.IsSource(password) {
		return
	}
	if strings.Contains(c.s[at:end-1], ".") || lex.ByteAt(c.s, end) == ':' && lex.IsDigit(lex.ByteAt(c.s, end+1)) {
		c.report("uri-password", "user and password of a host", "", at-len(password), at)
	}
}

// email masks the address around the @ at at (security 9.5.2).
func email(c *scan, at, _ int) {
	begin, end := lex.RunBack(c.s, at, &mailSet, 64), lex.Run(c.s, at+1, &hostSet, 255)
	host := strings.TrimRight(c.s[at+1:end], ".-")
	dot := strings.LastIndexByte(host, '.')
	if begin < at && dot > 0 && len(host)-dot > 2 && lex.AllIn(host[dot+1:], &lex.LetterSet) {
		c.report("email", "policy", "", begin, at+1+len(host))
	}
}

// host masks the name that ends in the internal suffix s[begin:end].
func host(c *scan, begin, end int) {
	if !lex.IsAlnum(lex.ByteAt(c.s, end)) && !(lex.ByteAt(c.s, end) == '.' && lex.IsAlnum(lex.ByteAt(c.s, end+1))) && !lex.IsAlnum(lex.ByteAt(c.s, begin-1)) {
		c.report("internal-host", "policy", "", lex.RunBack(c.s, begin, &hostSet, 255), end)
	}
}

// privateNets are how addresses of private networks begin, which internalIP masks.
var privateNets = []string{"10.", "172.", "192.168.", "169.254.", "fc", "fd", "fe8", "fe9", "fea", "feb"}

// internalIP masks the address of a private network that begins at i.
func internalIP(c *scan, i, _ int) {
	if before := lex.ByteAt(c.s, i-1); lex.IsAlnum(before) || before == '.' || before == ':' {
		return
	}
	text := strings.TrimRight(c.s[i:lex.Run(c.s, i, &ipSet, 64)], ".:")
	if host, port, ok := strings.Cut(text, ":"); ok && strings.IndexByte(port, ':') < 0 {
		text = host
	}
	if addr, err := netip.ParseAddr(text); err == nil && (addr.IsPrivate() || addr.IsLinkLocalUnicast()) {
		c.report("internal-ip", "policy", "", i, i+len(text))
	}
}

var (
	hostSet     = lex.SetOf(lex.Digits, lex.Letters, ".-")
	ipSet       = lex.SetOf(lex.Hexes, ".:")
	mailSet     = lex.SetOf(lex.Digits, lex.Letters, "._%+-")
	pgHostSet   = lex.SetOf(lex.Digits, lex.Letters, ".-*")
	schemeSet   = lex.SetOf(lex.Digits, lex.Letters, "+.-")
	shadowSet   = lex.SetOf(lex.Digits, ":") // ends a line of /etc/shadow
	uriSet      = lex.SetOf(" \t\r\n\"'`<>|\\").Complement()
	userinfoSet = lex.SetOf(lex.Digits, lex.Letters, "_-.:!#$%&*+^~?")
)
