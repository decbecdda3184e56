package redaction

import (
	"encoding/base64"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/cputest"
)

// adversarial returns texts of about size bytes that are slow to read, by their
// content.
func adversarial(tb testing.TB, size int) map[string]string {
	tb.Helper()
	random := make([]byte, size*3/4)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	blob := base64.StdEncoding.EncodeToString(random)
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	cases := map[string]string{
		"BEGIN lines":          fill("-----BEGIN RSA PRIVATE KEY-----\n"),
		"END lines":            fill("-----END RSA PRIVATE KEY-----\n"),
		"keys on one line":     fill("key_"),
		"blanks after a name":  "password" + fill(" "),
		"one line of code":     fill("function a(b,c){return b+c*2};var d=[1,2,3].map(function(e){return e*e});"),
		"base64":               blob,
		"base64 in lines":      "-----BEGIN PRIVATE KEY-----\n" + lines(blob, 64),
		"many secrets":         manySecrets(blob, size),
		"URIs without end":     fill("a://b:c@"),
		"quotes":               fill(`"`),
		"joined literals":      fill(`"a" + `),
		"escapes":              fill("%41"),
		"backslashes":          "password=\"" + fill(`\`),
		"zero-width spaces":    fill("\u200b"),
		"names without values": fill("password = "),
		"nested names":         fill("password(token(secret("),
		"placeholders":         fill("[REDACTED:password:0000]"),
		"false placeholders":   fill("[REDACTED:"),
		"user names":           fill("user = "),
		"mail servers":         fill(`password = "Xk29dkQ0dks!"; host = "smtp.`),
		"commands":             fill("curl -u "),
		"lines of a diff":      fill("-a\n+b\n"),
		"hunks":                fill("@@ -1 +1 @@\n"),
		// Forms that begin again within themselves and have no end.
		"names of names":        fill("key="),
		"fields of a query":     fill("htpasswd=a&"),
		"prefixes of tokens":    fill("sk-ant-"),
		"prefixes of two kinds": fill("xoxb-glpat-"),
		"JSON web tokens":       fill("eyJ."),
		"headers in base64":     fill("LS0tLS1CRUdJ"),
		"bearers of bearers":    fill("bearer:"),
		"calls":                 fill("totp('"),
		"PuTTY keys":            fill("Private-Lines: 1 ")[:size/16] + "\n" + lines(blob, 64),
		"a placeholder at last": manySecrets(blob, size) + "\n[REDACTED:",
		"one value repeated":    "password = \"" + blob[:300] + "\"\n" + fill(blob[:299]+" "),
		"values of one stem":    stems(blob[:600]) + fill(blob[:600] + "\n")[:size-size/4],
		// Different secrets of many kinds.
		"many tokens":          distinctly(blob, size, "x = gh"+"p_%s9\n"),
		"many bearers":         distinctly(blob, size, "Authorization: Bearer %s\n"),
		"many URIs":            distinctly(blob, size, "a://b:%s@h\n"),
		"many users":           distinctly(blob, size, "a:%s@h.test\n"),
		"many cells":           "user,password\n" + distinctly(blob, size, "a,%s\n"),
		"many elements":        distinctly(blob, size, "passwords = ['%s', 'b1c2d3e4']\n"),
		"many comparisons":     distinctly(blob, size, "'%s' == password\n"),
		"many branches":        distinctly(blob, size, "password = a ? '%s' : 'b1c2d3e4'\n"),
		"many pipes":           distinctly(blob, size, "echo %s | passwd --stdin\n"),
		"many data":            "kind: Secret\ndata:\n" + distinctly(blob, size, "  a: %s\n"),
		"many elements of XML": distinctly(blob, size, "<password>%s</password>\n"),
		"many keys of JSON":    distinctly(blob, size, `{"kty":"oct","k":"%s"}`+"\n"),
		"many hunks":           distinctly(blob, size, "--- a\n+++ b\n@@ -1 +1 @@\n-password = '%s'\n+x\n"),
		"many lines removed":   "@@ -1 +1 @@\n" + distinctly(blob, size, "-password = '%s'\n+x\n"),
		// Documents, tables and commands that begin many times.
		"heads of tables":        fill("user,password\n"),
		"columns":                fill("password,"),
		"columns of Markdown":    fill("| password "),
		"lists":                  fill("passwords = ["),
		"one list":               "passwords = [" + fill("'a1b2c3d4',"),
		"entries":                "passwords:\n" + fill("  - a1b2c3d4\n"),
		"branches":               fill(`password = a ? "b1c2d3" : `),
		"names before =":         fill("password, ") + "= 1",
		"comparisons":            fill(`"b1c2d3" == password `),
		"attributes of names":    fill(`="password" `),
		"names of elements":      fill(`<a name="password" `),
		"names of blocks":        fill(`"password" { `),
		"fields of values":       fill(`"password","value":`),
		"elements of a space":    fill("<a:password "),
		"Secrets":                fill("kind: Secret\n"),
		"Secrets of data":        fill("kind: Secret\ndata:\n"),
		"Secrets in JSON":        fill(`"kind":"Secret","data":{"a":`),
		"JSON web keys":          fill(`{"kty":`),
		"members of a key":       `{"kty":"oct",` + fill(`"k":"`+blob[:20]+`",`),
		"keys of .NET":           fill("<RSAKeyValue><P>"),
		"pipes":                  fill("echo a1b2c3 | passwd --stdin "),
		"users of chpasswd":      "chpasswd\n" + fill("a:b1c2d3\n"),
		"chpasswd on one line":   fill("chpasswd "),
		"arguments":              fill("net use a1b2c3 "),
		"names in other letters": fill("\u043f\u0430\u0440\u043e\u043b\u044c:"),
		"hosts":                  fill("a:b1c2d3@h:1 "),
		"at signs":               fill("@"),
		"colons":                 fill(":::"),
		"attributes":             fill(`<a type="password" `),
		"methods":                fill(`"password").to.`),
		"functions":              fill("password() { return "),
		"elements":               fill("<password><Value>"),
		"continued values":       fill("password=a\\\n"),
		"characters":             "password = {" + fill("'a',"),
		"lists of characters":    fill("password = {'a',"),
		"registries":             fill(`"Password"=hex:01,`),
		"files of a diff":        fill("--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n"),
		"keys of both sides":     fill("+-----BEGIN RSA PRIVATE KEY-----\n------BEGIN RSA PRIVATE KEY-----\n"),
		"brackets":               fill("[{("),
		"brackets after a name":  fill("password[{("),
		"spaced by nothing":      fill("p\u200ba\u200bs\u200bs\u200bw\u200bo\u200br\u200bd\u200b=\u200ba\u200b1\u200bb\u200b2\u200b"),
		"encodings in turn":      fill(`%70&#97;\u0073\x73`),
		"one joined literal":     "password = " + fill(`"a1" + `),
		"fields of objects":      fill(`"password":{"`),
		"private lines":          fill("Private-Lines: 1\n"),
		"statements":             fill("INSERT INTO users (password) VALUES ("),
		"digests":                fill("Authorization: Digest "),
		"sources of data":        fill("a:b@tcp("),
		"ports":                  fill("h:5432:d:u:b1c2d3 "),
		"here documents":         fill("password = <<"),
		"CDATA":                  fill("<password><![CDATA["),
		"rows of COPY":           fill("copy t(password,a) from stdin\n"),
		"quotes of Perl":         "password " + fill("x q(y "),
		"quotes of Ruby":         "password " + fill("x %{y "),
		"quotes of Rust":         "password " + fill(`x r#"y `),
		"values in quotes of q":  "password " + fill("=q(y,"),
	}
	return cases
}

// BenchmarkAdversarial measures processor time: a text of 5 MB should take less
// than one second of one thread, whatever it holds.
func BenchmarkAdversarial(b *testing.B) {
	p := newTestPipeline(b, Config{Emails: true, InternalIPs: true})
	cases := adversarial(b, 5<<20)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(cases[name])))
			took := cputest.Time(func() {
				for b.Loop() {
					if _, err := p.String(cases[name]); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.ReportMetric(took.Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

func lines(s string, width int) string {
	var b strings.Builder
	for at := 0; at+width <= len(s); at += width {
		b.WriteString(s[at:at+width] + "\n")
	}
	return b.String()
}

// distinctly repeats a format with a different secret each time.
func distinctly(blob string, size int, format string) string {
	var b strings.Builder
	blob = strings.NewReplacer("/", "a", "+", "b").Replace(blob)
	before, after, _ := strings.Cut(format, "%s")
	for at := 0; at+24 <= len(blob) && b.Len() < size; at += 24 {
		b.WriteString(before + blob[at:at+24] + after)
	}
	return b.String()
}

// stems returns values, each of which is the begin of the next one.
func stems(s string) string {
	var b strings.Builder
	for n := 20; n < len(s); n += 2 {
		b.WriteString("password = '" + s[:n] + "!'\n")
	}
	return b.String()
}

func manySecrets(blob string, size int) string {
	var b strings.Builder
	for at := 0; at+32 <= len(blob) && b.Len() < size; at += 32 {
		b.WriteString(`api_token = "` + blob[at:at+32] + "\"\n")
	}
	return b.String()
}
