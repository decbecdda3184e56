package redaction

import "strings"

// A commandFlag names a flag of a command whose value is a secret.
type commandFlag struct {
	word  string   // the command
	flags []string // flags whose value is a secret, or user:secret with pair
	pair  bool
	glued bool // the value may follow the flag without a blank
}

// commands take secrets in flags that do not say so.
var commands = []commandFlag{
	{"p4 ", []string{"-P"}, false, false},
	{"p4.exe ", []string{"-P"}, false, false},
	{"curl", []string{"-u", "--user", "-U", "--proxy-user"}, true, true},
	{"wget ", []string{"--user"}, true, false},
	{"mysql", []string{"-p"}, false, true},
	{"mariadb", []string{"-p"}, false, true},
	{"sshpass", []string{"-p"}, false, true},
	{"psexec", []string{"-p"}, false, false},
	{"plink", []string{"-pw"}, false, false},
	{"pscp", []string{"-pw"}, false, false},
	{"putty", []string{"-pw"}, false, false},
	{"docker login", []string{"-p"}, false, false},
	{"redis-cli", []string{"-a"}, false, false},
	{"ldapsearch", []string{"-w"}, false, false},
	{"ldapmodify", []string{"-w"}, false, false},
	{"smbclient", []string{"-U"}, true, false},
	{"rpcclient", []string{"-U"}, true, false},
	{"svn ", []string{"--password"}, false, false},
	{"nsc ", []string{"-K", "-k"}, false, false},
	{"sqlcmd", []string{"-P"}, false, false},
	{"bcp ", []string{"-P"}, false, false},
	{"ipmitool", []string{"-P"}, false, false},
	{"xfreerdp", []string{"/p:"}, false, true},
	{"crackmapexec", []string{"-p", "-H"}, false, false},
	{"cme ", []string{"-p", "-H"}, false, false},
	{"evil-winrm", []string{"-p", "-H"}, false, false},
	{"htpasswd", []string{"-b"}, true, false},
	{"zip ", []string{"-P"}, false, false},
	{"openssl", []string{"-passin", "-passout", "-k", "-pass"}, false, false},
	{"keytool", []string{"-storepass", "-keypass"}, false, false},
	{"convertto-securestring", []string{"-String", ""}, false, false},
	{"useradd", []string{"-p"}, false, false},
	{"usermod", []string{"-p"}, false, false},
	{"identified by", []string{""}, false, false},
	{"identified with", []string{"by", "BY"}, false, false},
}

// command looks for the flags of a command in the rest of its line and of the
// lines that continue it.
func (d *detector) command(c *commandFlag, begin, end int) {
	if d.certain || begin > 0 && (isAlnum(d.s[begin-1]) || d.s[begin-1] == '_') {
		return
	}
	if begin < d.commandEnd[c.word] {
		return
	}
	stop, most := end, min(len(d.s), end+maxCommand)
	for range maxContinued {
		stop = lineEnd(d.s[:most], stop)
		if stop-2 < end || d.s[stop-2] != '\\' && d.s[stop-2] != '`' || stop >= len(d.s) {
			break
		}
	}
	if d.commandEnd == nil {
		d.commandEnd = map[string]int{}
	}
	d.commandEnd[c.word] = stop
	line := d.s[end:stop]
	for _, flag := range c.flags {
		d.flagValue(c, flag, line, end)
	}
}

// maxCommand and maxContinued bound a command, in bytes and in lines.
const (
	maxCommand   = 1 << 10
	maxContinued = 6
)

func (d *detector) flagValue(c *commandFlag, flag, line string, base int) {
	at := 0
	for at <= len(line) {
		i := strings.Index(line[at:], flag)
		if i < 0 {
			return
		}
		i += at
		at = i + max(1, len(flag))
		if flag != "" && i > 0 && !spaceSet.has(line[i-1]) && !quoteSet.has(line[i-1]) {
			continue
		}
		v := i + len(flag)
		if v >= len(line) || flag != "" && !c.glued && !blankSet.has(line[v]) && line[v] != '=' {
			continue
		}
		glued := flag != "" && !blankSet.has(line[v]) && line[v] != '='
		v = run(line, v, &flagGap, 4)
		if d.flagSecret(c, line, v, base, glued) || flag == "" {
			return
		}
	}
}

var (
	flagGap   = setOf(" \t=")
	flagStops = setOf(" \t\r\n\"'`;|)")
)

// flagSecret masks the value at line[v] if it is a secret, and reports so.
func (d *detector) flagSecret(c *commandFlag, line string, v, base int, glued bool) bool {
	lit := literal{}
	if v < len(line) && quoteSet.has(line[v]) && !glued {
		var ok bool
		if lit, ok = quotedAt(line, v); !ok {
			return false
		}
	} else {
		end := v
		for end < len(line) && !flagStops.has(line[end]) {
			end++
		}
		lit = literal{v, end, false, end}
	}
	text := strings.TrimSpace(line[lit.start:lit.end])
	if c.pair {
		i := strings.IndexAny(text, ":%")
		if i < 0 {
			return false
		}
		lit.start += i + 1
		text = text[i+1:]
	}
	text = strings.Trim(text, `"'`)
	if len(text) < 2 || text[0] == '-' || isPlaceholder(text) && len(text) > 4 || standsFor(text) || dullWords(text, 0) || isSource(text) || c.pair && strings.HasPrefix(text, "//") {
		return false
	}
	if glued && shapeOf(text).digit == 0 && !gibberish(text) {
		return false
	}
	if c.flags[0] == "" && !lit.quoted && !random(text) {
		return false
	}
	d.found("password", "command "+strings.TrimSpace(c.word), base+lit.start, base+lit.start+len(text))
	return true
}

// A callArgs names a function one of whose arguments is a secret.
type callArgs struct {
	word string
	arg  int  // which one, from 0
	key  bool // only what looks like a key
	// all masks the arguments before it too: a user, a host.
	all bool
}

// calls take secrets in arguments without a name.
var calls = []callArgs{
	{".login(", 1, false, false}, {"networkcredential(", 1, false, true}, {"directoryentry(", 2, false, true}, {"usernamepasswordcredentials(", 1, false, false},
	{"httpbasicauth(", 1, false, false}, {"basicauth(", 1, false, false}, {"setbasicauth(", 1, false, false}, {"basic_auth(", 1, false, false}, {"plainauth(", 2, false, false},
	{"passwordauthentication(", 1, false, false}, {"drivermanager.getconnection(", 2, false, false}, {"mysqli(", 2, false, false}, {"mysqli_connect(", 2, false, false}, {"mysql_connect(", 2, false, false},
	{"pymysql.connect(", 2, false, false}, {"new pdo(", 2, false, false}, {"totp.new(", 0, false, false}, {"totp(", 0, false, false}, {"hotp.new(", 0, false, false}, {"authenticator.generate(", 0, false, false},
	{"smtpclient.authenticate(", 1, false, false}, {"authplain(", 2, false, false}, {"basiccredentials(", 1, false, false}, {"basicawscredentials(", 1, false, false}, {"newstaticcredentials(", 1, false, false},
	{"newstaticcredentialsprovider(", 1, false, false}, {"awscredentials(", 1, false, false},
	{"auth=(", 1, false, false},
	{"client(", 0, true, false}, {"api(", 0, true, false}, {"configure(", 0, true, false}, {"initialize(", 0, true, false}, {"authenticate(", 0, true, false}, {"session(", 0, true, false},
}

// call masks the argument of a call, if it is a literal.
func (d *detector) call(c *callArgs, begin, end int) {
	if d.certain || begin > 0 && isAlnum(d.s[begin]) && isAlnum(d.s[begin-1]) && !isUpper(d.s[begin]) && d.s[begin-1] != '_' {
		return
	}
	at := run(d.s, end, &spaceSet, maxGap)
	for n := 0; ; n++ {
		if at >= len(d.s) {
			return
		}
		next, lit, ok := d.argument(at)
		if c.all && n < c.arg && ok && lit.end-lit.start > 2 && !standsFor(d.s[lit.start:lit.end]) && !isPlaceholder(d.s[lit.start:lit.end]) {
			d.found("username", "argument of "+strings.Trim(c.word, ".("), lit.start, lit.end)
		}
		if n == c.arg {
			if text := d.s[lit.start:lit.end]; ok && len(text) > 2 && !isPlaceholder(text) && !standsFor(text) && !dullWords(text, 0) && !isSource(text) && !isProse(text) && (!c.key || keyLike(text) || isUUID(text) || veryRandom(text)) {
				d.found("password", "argument of "+strings.Trim(c.word, ".("), lit.start, lit.end)
			}
			return
		}
		if next >= len(d.s) || d.s[next] != ',' {
			return
		}
		at = run(d.s, next+1, &spaceSet, maxGap)
	}
}

// argument reads the argument at at; ok is set if it is one literal. next is
// the offset of what follows it.
func (d *detector) argument(at int) (next int, lit literal, ok bool) {
	if i := skipLiteralPrefix(d.s, at); i < len(d.s) && quoteSet.has(d.s[i]) {
		lit, ok = quotedAt(d.s, i)
		return run(d.s, lit.next, &spaceSet, maxGap), lit, ok
	}
	end := at
	for end < len(d.s) && end-at < 128 && strings.IndexByte(",()\n;", d.s[end]) < 0 {
		end++
	}
	return end, literal{}, false
}
