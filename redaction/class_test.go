package redaction

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/redaction/internal/judge"
)

// Secrets in tests are assembled at run time, so that secret scanners do not report
// this file.
const (
	alnum40 = "9tMDf9jQ5vxV1UN1qKy88ySi5yu3lrDGiJq3Zk7w"
	hex40   = "93917c9b9df888596a822d0100a21dd9253410dc"
)

func join(parts ...string) string { return strings.Join(parts, "") }

// keyBlock returns a PEM block of lines that look like a key.
func keyBlock(label string, lines int) string {
	var b strings.Builder
	b.WriteString("-----BEGIN " + label + "-----\n")
	body := keyBody
	if !strings.Contains(label, "PRIVATE") {
		body = certificateBody
	}
	for range lines {
		b.WriteString(body + "\n")
	}
	b.WriteString("-----END " + label + "-----\n")
	return b.String()
}

const keyBody = "MIIEowIBAAKCAQEAs8nA1vK7DRH7qUXCDWLrA4ImiPGmTOmvBrtr53xrOkCMHaKR"

const certificateBody = "MIIDazCCAlOgAwIBAgIUs8nA1vK7DRH7qUXCDWLrA4ImiPGmTOmvBrtr53xrOkCM"

func redacted(t *testing.T, p *Pipeline, text string) string {
	t.Helper()
	out, err := p.String(text)
	if err != nil {
		t.Fatalf("redact %q: %v", text, err)
	}
	return out.String()
}

// A positive case has a text and the secret that has to be masked in it.
type positive struct {
	name, text, secret string
}

func testPositive(t *testing.T, cfg Config, cases []positive) {
	p := newTestPipeline(t, cfg)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(c.text, c.secret) {
				t.Fatalf("invalid case: %q is not in %q", c.secret, c.text)
			}
			out := redacted(t, p, c.text)
			if strings.Contains(out, c.secret) {
				t.Errorf("the secret is not masked: %q", out)
			}
			before, _, _ := strings.Cut(c.text, c.secret)
			if !strings.Contains(out, judge.PlaceholderHead) || !strings.HasPrefix(out, before[:strings.IndexAny(before+" ", " =:@")]) && !strings.HasPrefix(out, judge.PlaceholderHead) {
				t.Errorf("the text around the secret is masked: %q", out)
			}
			if strings.Count(out, "\n") != strings.Count(c.text, "\n") {
				t.Errorf("lines were %d, are %d", strings.Count(c.text, "\n"), strings.Count(out, "\n"))
			}
		})
	}
}

func testNegative(t *testing.T, cfg Config, texts []string) {
	p := newTestPipeline(t, cfg)
	for _, text := range texts {
		t.Run(text[:min(len(text), 30)], func(t *testing.T) {
			t.Parallel()
			if out := redacted(t, p, text); out != text {
				t.Errorf("changed to %q", out)
			}
		})
	}
}

// API keys and bearer tokens are masked (security 9.5.2).
func TestTokensArePositive(t *testing.T) {
	t.Parallel()
	github := join("gh", "p_", alnum40[:36])
	aws := join("AK", "IA", "6YPUJNNVRAD7FMJM")
	slack := join("xo", "xb-", "211649829269-376302052684-s4AOAQOfOEeXg5qs2ZSh8Dxu")
	jwt := join("eyJ", "hbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", ".eyJzdWIiOiAiMTM0MTg1NjA0NiJ9", ".wmb9H1dOR36apkX1WfKVCGJIShT5T8OnLG6xl7XEgcf")
	testPositive(t, Config{}, []positive{
		{"in code", `const apiKey = "` + github + `"`, github},
		{"in YAML", "api_token: " + github, github},
		{"in XML, before a <", "<apiKey>" + github + "</apiKey>", github},
		{"in a query, before an &", "curl https://x.test/?access_token=" + aws + "&limit=5", aws},
		{"in prose, before a comma", "the new key is " + aws + ", see wiki", aws},
		{"as an argument with no name", `client = Client("` + slack + `")`, slack},
		{"after an inline allow comment's bait", `token = "` + github + `" // gitleaks:allow`, github},
		{"with a word of allow-lists inside", join("x = gh", "p_5m4Yddl44vfalseQA8swmhCftvcFF50tCoQ3"), "5m4Yddl44vfalseQA8swmhCftvcFF50tCoQ3"},
		{"bearer header", `-H "Authorization: Bearer ` + alnum40 + `"`, alnum40},
		{"basic header", "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("svc:"+alnum40[:10])), base64.StdEncoding.EncodeToString([]byte("svc:" + alnum40[:10]))},
		{"JSON web token", "cookie=" + jwt, jwt},
		{"hex beside a telling name", `api_key = "` + hex40 + `"`, hex40},
		{"on the line below its name", "api_key:\n  \"" + alnum40 + "\"", alnum40},
		{"two fields of an object", `{"key": "Token", "value": "` + alnum40 + `"}`, alnum40},
		{"docker auth", `"auth": "` + base64.StdEncoding.EncodeToString([]byte("svc:"+alnum40[:10])) + `"`, base64.StdEncoding.EncodeToString([]byte("svc:" + alnum40[:10]))},
		{"p4 ticket file", join("ssl:p4.test:1666=bob:A7A31BBABD48AB64", "FC28FE4EFAE149CF"), join("A7A31BBABD48AB64", "FC28FE4EFAE149CF")},
		{"bytes of a key", "static const uint8_t secret_key[12] = { 0xe3, 0x23, 0x20, 0x16, 0xb4, 0xfe, 0x02, 0xe5, 0xed, 0x35, 0x26, 0x63 };", "0xe3, 0x23, 0x20"},
	})
}

// Values that are assigned to names of passwords are masked (security 9.5.2).
func TestPasswordAssignmentsArePositive(t *testing.T) {
	t.Parallel()
	var cases []positive
	for _, password := range []string{"Summer2024!", "hunter2hunter2", "Tr0ub4dor&3", "correct-horse-battery-staple", "xK9#mQ2$vL7p", "qwertyuiop"} {
		for name, format := range map[string]string{
			"ini":               "password = %",
			"YAML":              "db_passwd: '%'",
			"JSON":              `"password": "%",`,
			"properties":        "spring.datasource.password=%",
			"SMTP properties":   "mail.smtp.password=%",
			"connection string": `"Server=db1;User Id=sa;Password=%;Encrypt=true"`,
			"JDBC":              "url=jdbc:mysql://db1:3306/x?user=app&password=%&useSSL=true",
			"Go":                `dbPass := "%"`,
			"Python keyword":    "connect(user='app', passwd='%')",
			"PHP":               "define('DB_PASSWORD', '%');",
			"SQL":               "ALTER USER app WITH PASSWORD '%';",
			"SQL identified":    "CREATE USER 'app' IDENTIFIED BY '%';",
			"flag":              "mysql -u root --password=% db",
			"netrc":             "machine ftp.test login bob password %",
			"p4 -P":             "p4 -u svc -P % sync",
			"comparison":        `if password == "%":`,
			"setter":            `cfg.setPassword("%");`,
			"prose":             "Test account password is % on staging",
			"XML":               "<password>%</password>",
			"SMTP login":        "server.login('bot@corp.test', '%')",
			"shell default":     "${DB_PASSWORD:-%}",
		} {
			cases = append(cases, positive{name + " " + password, strings.Replace(format, "%", password, 1), password})
		}
	}
	testPositive(t, Config{}, cases)
}

// They are masked if name and value are further apart, too (security 9.5.2).
func TestDistantValuesArePositive(t *testing.T) {
	t.Parallel()
	var cases []positive
	for _, password := range []string{"Gx7!pQz2Lm", "tangerine-Falcon-92", "Vintage_Oak7"} {
		for name, format := range map[string]string{
			"Dockerfile":           "ENV MYSQL_ROOT_PASSWORD %",
			"redis.conf":           "requirepass %",
			"kickstart":            "rootpw: %",
			"Terraform variable":   "variable \"db_password\" {\n  type    = string\n  default = \"%\"\n}",
			"setting with a value": `<setting name="Password"><value>%</value></setting>`,
			"SQL row":              "INSERT INTO users (name, password) VALUES ('eve', 'x'), ('bob', '%');",
			"SQL for a user":       "SET PASSWORD FOR 'bob'@'localhost' = '%';",
			"last field":           "Server=db;User Id=sa;Password=%;",
			"ODBC":                 "Driver={ODBC};Server=h;UID=sa;PWD=%",
			"Oracle":               "jdbc:oracle:thin:scott/%@//db:1521/x",
			"pgpass":               "db:5432:app:bob:%",
			"tuple":                "requests.get(u, auth=('bob', '%'))",
			"C++ braces":           `std::string passwd{"%"};`,
			"Rust":                 `const PASSWORD: &'static str = "%";`,
			"useradd":              "useradd -p % bob",
			"prompt":               "Password for root: %",
			"misspelt":             "PASWORD=%",
			"cells of Markdown":    "| password | % |",
			"bold in Markdown":     "**Password:** %",
			"cells of HTML":        "<td>Password</td><td>%</td>",
			"plist":                "<key>password</key>\n<string>%</string>",
			"Hadoop":               "<name>db.password</name>\n<value>%</value>",
			"CDATA":                "<password><![CDATA[%]]></password>",
			"here document":        "password = <<EOT\n%\nEOT\n",
			"Perl":                 "my $password = q(%);",
			"Ruby":                 "password = %q{%}",
			"Swift":                `let password = #"%"#`,
			"Erlang":               `{password, "%"}`,
			"csh":                  "setenv PASSWORD %",
			"JSON in JSON in JSON": `{"a":"{\\\"password\\\":\\\"%\\\"}"}`,
			"colours":              "\x1b[31mpassword\x1b[0m = '%'",
			"closing parenthesis":  "password: %)x",
		} {
			cases = append(cases, positive{name + " " + password, format[:strings.LastIndex(format, "%")] + password + format[strings.LastIndex(format, "%")+1:], password})
		}
	}
	cases = append(cases, positive{"key, then a suffix", "AccountKey=" + alnum40 + ";EndpointSuffix=core.windows.test", alnum40})
	testPositive(t, Config{}, cases)
}

// SMTP credentials and passwords of connection URIs are masked (security 9.5.2).
func TestURIsArePositive(t *testing.T) {
	t.Parallel()
	testPositive(t, Config{}, []positive{
		{"smtps", "url = smtps://svc:Summer2024!@smtp.corp.test", "Summer2024!"},
		{"postgres", `"postgres://app:letmein_prod@db/x"`, "letmein_prod"},
		{"percent-encoded", "amqp://svc:p%40ss%3Aword1@h", "p%40ss%3Aword1"},
		{"Go MySQL", `"svc:Summer2024!@tcp(db1:3306)/app"`, "Summer2024!"},
		{"an @ in the password", "mongodb+srv://svc:p@ss135!@c0.test/x", "p@ss135!"},
		{"a token for a user", "https://" + hex40[:32] + "@o12.ingest.sentry.test/34", hex40[:32]},
		{"a / behind a digit", "postgres://bob:9aB/xY12k@db/x", "9aB/xY12k"},
		{"a ? behind a digit", "amqp://svc:7f?Qz81kd@mq", "7f?Qz81kd"},
		{"a = and two /", "redis://app:4=K/d/9sQ@cache", "4=K/d/9sQ"},
		{"a UUID for a user", "https://6ba7b810-9dad-41d1-80b4-00c04fd430c8@git.corp.test/x", "6ba7b810-9dad-41d1-80b4-00c04fd430c8"},
		{"two hosts", "http://ab:b1234567@h1/x,http://ab:b1234567@h2/x", "b1234567"},
	})
}

// Private keys are masked in all their lines, whole or cut off (security 9.5.2).
func TestPrivateKeysAreMasked(t *testing.T) {
	t.Parallel()
	block := keyBlock("RSA PRIVATE KEY", 6)
	hunk := func(prefix string, lines string) string {
		var b strings.Builder
		for l := range strings.Lines(lines) {
			b.WriteString(prefix + l)
		}
		return b.String()
	}
	head, tail := block[:4*65], block[len(block)-4*65:]
	cases := map[string]string{
		"whole":                     block,
		"PGP":                       strings.Replace(keyBlock("PGP PRIVATE KEY BLOCK", 6), "-\n", "-\n\nVersion: GnuPG v2\n", 1),
		"encrypted":                 strings.Replace(keyBlock("RSA PRIVATE KEY", 6), "-\n", "-\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,8F388133B8DFE5D1\n\n", 1),
		"CRLF":                      strings.ReplaceAll(block, "\n", "\r\n"),
		"added":                     "@@ -1,3 +1,9 @@\n" + hunk("+", block),
		"removed":                   "@@ -1,9 +1,3 @@\n" + hunk("-", block),
		"context":                   "@@ -1,9 +1,9 @@\n" + hunk(" ", block) + "+x\n",
		"p4 default diff":           hunk("> ", block),
		"indented in a comment":     hunk("//   ", block),
		"concatenated literals":     `"` + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\\n\" +\n  \"") + `"`,
		"escaped in JSON":           `{"private_key": "` + strings.ReplaceAll(block, "\n", `\n`) + `"}`,
		"on one line":               `KEY="` + strings.ReplaceAll(block, "\n", " ") + `"`,
		"URL-encoded":               "k=" + strings.NewReplacer("\n", "%0A", " ", "%20", "+", "%2B", "/", "%2F").Replace(block),
		"boundary: END cut off":     "@@ -1,3 +1,9 @@\n" + hunk("+", head),
		"boundary: BEGIN cut off":   "@@ -9,4 +9,9 @@\n" + hunk(" ", tail) + "+x\n",
		"boundary: middle only":     "@@ -9,4 +9,9 @@\n" + hunk(" ", strings.Repeat(keyBody+"\n", 3)) + "+x\n",
		"boundary: across hunks":    "@@ -1,3 +1,9 @@\n" + hunk("+", head) + "@@ -22,3 +28,4 @@\n" + hunk("+", tail),
		"boundary: interleaved":     "@@ -1,8 +1,8 @@\n" + interleave(block, keyBlock("PRIVATE KEY", 6)),
		"boundary: BEGIN, then END": block + "\ncode()\n" + block,
	}
	p := newTestPipeline(t, Config{})
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := redacted(t, p, text)
			if strings.Contains(out, keyBody[:24]) {
				t.Errorf("part of the key is not masked:\n%s", out)
			}
			if strings.Count(out, "\n") != strings.Count(text, "\n") {
				t.Errorf("lines were %d, are %d", strings.Count(text, "\n"), strings.Count(out, "\n"))
			}
			if strings.Count(out, "@@") != strings.Count(text, "@@") || strings.Contains(text, "code()") && !strings.Contains(out, "code()") {
				t.Errorf("text between the keys is masked:\n%s", out)
			}
			// A request with the masked key and what follows it in a prompt is sent.
			for _, prompt := range []string{out + digestLine, numbered(out + digestLine), digestLine + out} {
				body, err := json.Marshal(map[string]string{"content": prompt})
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Check(body); err != nil {
					t.Errorf("%v:\n%s", err, prompt)
				}
			}
		})
	}
}

// digestLine is a line that could be one of a key, but for what is before it.
const digestLine = "\nsha256:\n9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"

func interleave(a, b string) string {
	var out strings.Builder
	la, lb := strings.Split(strings.TrimSpace(a), "\n"), strings.Split(strings.TrimSpace(b), "\n")
	for i := range la {
		out.WriteString("-" + la[i] + "\n+" + lb[i] + "\n")
	}
	return out.String()
}

// Email addresses, hosts and IP addresses are masked only by policy (security 9.5.2).
func TestPolicyClasses(t *testing.T) {
	t.Parallel()
	text := "mail bob@corp.example.com about db7.corp.example.com at 10.1.2.3"
	testNegative(t, Config{}, []string{text})
	testPositive(t, Config{Emails: true}, []positive{{"e-mail", text, "bob@corp.example.com"}})
	testPositive(t, Config{InternalIPs: true}, []positive{{"address", text, "10.1.2.3"}})
	testPositive(t, Config{HostSuffixes: []string{"corp.example.com"}}, []positive{{"host", text, "db7.corp.example.com"}})
	testNegative(t, Config{InternalIPs: true, HostSuffixes: []string{"corp"}, Emails: true}, []string{
		"v1.10.0.3", "self.corporate", "x := a.corp.b", "@Override", "8.8.8.8", "git@", "a @ b",
	})
}

// Code without secrets stays unchanged (security 9.5.4).
func TestCodeIsNotRedacted(t *testing.T) {
	t.Parallel()
	testNegative(t, Config{}, []string{
		"index 2296e50f49..686d8dd225 100644",
		"commit " + hex40,
		"Change-Id: I" + hex40,
		"... ... digest A52949BB8387769CDA13DFA90AD5F3C2",
		"FROM alpine@sha256:6271aebda5f45731416ec40af31391bd05c5c89b9e7783cee8ba0114e2d73f29",
		`"integrity": "sha512-htqklqLs2fx2hp5zhCf5aghSTTKbfuIWQ9XldModUkjFdsqa7bghQr6HnmuMnZ9mPXhi1VjmqGHUJTiJLgjSKa==",`,
		"github.com/a/token v1.2.0 h1:yPt3QoEfWEl2k+7yKRuXAgZN/PuJsqT44l7dPqTDPqN=",
		"google.golang.org/genproto/googleapis/api v0.0.0-20260630182238-925bb5da69e7",
		`ETag: "a52949bb8387769cda13dfa90ad5f3c2"`,
		`Project("{FAE04EC0-301F-11D3-BF4B-00C04F79EFBC}") = "A"`,
		"url(data:image/png;base64,iVBORw0KGgoaufWKQurfh47FgNJeXvLsLoicTg2h5vK2LctCtwUv4VjUGpq3vWBBGC9s5K)",
		"static const uint32_t K[] = { 0x82481621, 0x40e10498, 0x97c89aba };",
		`password := os.Getenv("DB_PASSWORD")`,
		`token = os.environ.get("API_TOKEN", "")`,
		"password = ${DB_PASSWORD}", "P4PASSWD=$P4PASSWD", "pass: {{ vault_db_password }}", "password: <password>", "PASSWORD=changeme",
		"url: postgres://user:%s@db/x", "url: postgres://user:${PASSWORD}@db/x", "url: postgres://user:<password>@db/x",
		`"forgotPassword": "Forgot your password?",`,
		`"LABEL_PASSWORD": "Kodeord",`,
		"func hashPassword(password string) (string, error) {",
		"this.password = password;", "Token:     result.Pending.Token,", "client_secret=settings.OAUTH_CLIENT_SECRET,",
		"password?: string | undefined;", "MIN_PASSWORD_LENGTH = 12", `cache_key = f"user:{user_id}:profile:{version}"`,
		`"http://localhost:PORT/api/v1/users/@me"`, "http://h:8080/@a/b", "https://esm.test:443/@scope/pkg@1.2.3",
		"git@github.com:a/b.git", "https://example.com/path@version/file", "publicKeyToken=31bf3856ad364e35",
		keyBlock("CERTIFICATE", 6), keyBlock("PUBLIC KEY", 4), "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCgvqgSti/XaGLTr1nngSxwXTtZT94 bob@ws",
		"@@ -9,4 +9,9 @@\n " + strings.Repeat(certificateBody+"\n ", 3) + "-----END CERTIFICATE-----\n+x\n",
		"INSERT INTO users (name, password) VALUES ('bob', ?), ($1, 'password')", `f("a");item.renderPass=renderPass;item`, "password: String", "(the password: see below)", "'!': encodeHost | encodePassword | encodeZone2,", `{token.IMAG, "0x12efp-123", "x"}`, "| password | string | required |", "secret := load(a)",
		"password_id = 2938479", `openssl req -passin "file:dkajco1" -new`,
	})
}

// Leaks that were reported for this and other tools are masked (security 9.5.4).
func TestReportedLeaks(t *testing.T) {
	t.Parallel()
	aws := join("AK", "IA", "KAMGWW7Z77XKHQLD")
	bot := "4839574812:" + "AAFD39kkdpWt3ywyRZergyOLMaJhac60qcK"
	lowerToken := join("ap", "i-uftz9ocw84hqlwh0ijv9syumlzyo")
	square := join("EA", "AA", alnum40)
	testPositive(t, Config{InternalIPs: true}, []positive{{"address before a placeholder", "10.1.2.3 [REDACTED:email:0000]", "10.1.2.3"}})
	testPositive(t, Config{}, []positive{
		{"split over implicit concatenation", `char *k = "AKIAKA" "MGWW7Z77XKHQLD";`, "MGWW7Z77XKHQLD"},
		{"split over added literals", "k  = \"AKIAKA\" +\n  \"MGWW7Z77XKHQLD\"", "MGWW7Z77XKHQLD"},
		{"zero-width space in the name", "pass\u200bword = Xk29dkQ0dks!", "Xk29dkQ0dks!"},
		{"zero-width space in the value", `token = "` + aws[:8] + "\u200b" + aws[8:] + `"`, aws[:8] + "\u200b" + aws[8:]},
		{"letters that look blank in the name", "pa\u3164ss\uffa0wo\u2800rd = Xk29dkQ0dks!", "Xk29dkQ0dks!"},
		{"look-alike letter in the name", "p\u0430ssword = Xk29dkQ0dks!", "Xk29dkQ0dks!"},
		{"fullwidth equals sign", "password\uff1dXk29dkQ0dks!", "Xk29dkQ0dks!"},
		{"no-break space", "password\u00a0=\u00a0Xk29dkQ0dks!", "Xk29dkQ0dks!"},
		{"UTF-16 as NULs", "p\x00a\x00s\x00s\x00w\x00o\x00r\x00d\x00=\x00X\x00k\x002\x009\x00d\x00k\x00Q\x00", "X\x00k\x002\x009\x00d\x00k\x00Q"},
		{"HTML entity in the value", `<input type="password" value="Xk29&#100;kQ0dks">`, "Xk29&#100;kQ0dks"},
		{"percent-encoded separator", "?password%3DXk29dkQ0dks", "Xk29dkQ0dks"},
		{"invalid UTF-8 beside it", "x \xff\xfepassword = \"Xk29dkQ0dks!\" \xc0", "Xk29dkQ0dks!"},
		{"in a diff's file header", "--- //depot/a/token_" + aws + "\t2026-01-01\n+++ //depot/a/b\t2026-01-01\n", aws},
		{"behind a placeholder of an author", `password = "[REDACTED:password:0000]Xk29dkQ0dks!"`, "Xk29dkQ0dks!"},
		{"in a placeholder of no class", `password = "[REDACTED:` + join(hex40[:16], hex40[24:]) + `:0000]"`, join(hex40[:16], hex40[24:])},
		{"a token as the class of a placeholder", "see [REDACTED:" + lowerToken + ":0000] there", lowerToken},
		{"a password as the class of a placeholder", "password = [REDACTED:tulip7-fj0rd-water9:0000]", "tulip7-fj0rd-water9"},
		{"behind a false placeholder", `password = "[REDACTED:Xk29dkQ0dks!]"`, "Xk29dkQ0dks!"},
		{"without a prefix, before a placeholder", "bot " + bot + "\n[REDACTED:password:0000]\n", bot},
		{"below a path", "/AbCdefghIjklMnopqrst/" + aws, aws},
		{"below folders with digits", "//depot/Team7/src2/v3/Cfg/" + aws, aws},
		{"of capitals and small letters, below a path", "/depot/canary/project/" + square, square},
		{"the secret of a key below a path", aws + "\n/depot/Main/Projects/" + alnum40 + "\n", alnum40},
		{"basic credential cut off on its line", "Authorization: Basic dXNlcjpwYXNzd29y", "dXNlcjpwYXNzd29y"},
		{"password next to an escaped key", `{\"password\": \"Xk29dkQ0dks!\"}`, "Xk29dkQ0dks!"},
	})
}

// Each side of a diff is read as one file: the name of a secret may be in a context
// line, and a side has no lines of the other.
func TestDiffSides(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	for name, c := range map[string]struct{ text, want string }{
		"name in context, value removed": {"@@ -1,3 +1,3 @@\n api_key:\n-  \"" + alnum40 + "\"\n+  \"${KEY}\"\n", alnum40},
		"name removed, value in context": {"@@ -1,3 +1,3 @@\n-- name: API_TOKEN\n+- name: X\n   value: \"" + alnum40 + "\"\n", alnum40},
		"value far below a removed line": {"@@ -1,9 +1,8 @@\n-gone\n a\n b\n c\n d\n e\n password = \"" + password + "\"\n", password},
		"removed far below":              {"@@ -1,9 +1,8 @@\n a\n b\n c\n d\n-password = \"" + password + "\"\n", password},
		"two sides of one line":          {"@@ -1 +1 @@\n-password = \"" + password + "\"\n+password = \"Qw7!other9\"\n", "Qw7!other9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, _, err := p.Explain(c.text, "", true)
			if err != nil || strings.Contains(out.String(), c.want) || strings.Contains(out.String(), password) {
				t.Errorf("left (%v):\n%s", err, out)
			}
		})
	}
	text := "@@ -1,2 +1,2 @@\n-x := `\n+password = `\n a\n@@ -9,2 +9,2 @@\n f()\n+g()`\n"
	out, _, _, err := p.Explain(text, "", true)
	if err != nil || !strings.Contains(out.String(), "\n@@ -9,2 +9,2 @@\n f()\n+g()") {
		t.Errorf("a literal without end went on into the next hunk (%v):\n%s", err, out)
	}
}

// A token that is cut off by a hunk or a line limit is found (security 9.5.4).
func TestTruncatedTokens(t *testing.T) {
	t.Parallel()
	testPositive(t, Config{}, []positive{
		{"cut GitHub token", join("x gh", "p_", alnum40[:30]), alnum40[:30]},
		{"cut at the end of a literal", `t := "` + join("xo", "xb-", "211649829269-3763020526"), "211649829269-3763020526"},
		{"cut JWT", join("a eyJ", "hbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiAiMTM0MTg"), "eyJzdWIiOiAiMTM0MTg"},
		{"literal of three quotes without its end", "password = \"\"\"Summer2024!\nx", "Summer2024!"},
		{"literal without its closing quote", `password = "Summer2024!`, "Summer2024!"},
	})
}

// A value may consist only of the suffixes of a number in C.
func TestSuffixesWithoutANumberAreText(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	for _, text := range []string{`key = "lulu"`, "key: ulllu", "auth = LUL", `salt = "0xUL"`} {
		if got, err := p.String(text); err != nil || got.String() != text {
			t.Errorf("%q became %q: %v", text, got, err)
		}
	}
}
