package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"mime/quotedprintable"
	"net/url"
	"strings"
)

// A canary is a fake secret in a text that makes it recognizable as one.
type canary struct {
	text   string // planted in a change
	secret string // must not be found anywhere
	inPath bool   // text can be part of a file name
	random bool   // half of the secret is as unique as the whole
	atEnd  bool   // text is planted at the end of a file and of a description
	// byChoice: the default policy does not mask it.
	byChoice bool
}

// A generator makes canaries of one class.
type generator func(r *rand.Rand, n int) canary

const (
	upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lower = "abcdefghijklmnopqrstuvwxyz"
	digit = "0123456789"
	alnum = upper + lower + digit
)

func pick(r *rand.Rand, n int, from string) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = from[r.IntN(len(from))]
	}
	return string(out)
}

// token makes keys with a known prefix. The prefixes below are split so that secret
// scanners ignore this file.
func token(prefix string, n int, from string) generator {
	return func(r *rand.Rand, _ int) canary {
		secret := pick(r, n, from)
		return canary{text: prefix + secret, secret: secret, inPath: true, random: true}
	}
}

// value makes random values in a text that names them.
func value(format string, n int, from string) generator {
	return func(r *rand.Rand, _ int) canary {
		secret := pick(r, n, from)
		return canary{text: fmt.Sprintf(format, secret), secret: secret, random: true}
	}
}

// numbered makes values such as people choose.
func numbered(format, word string) generator {
	return func(r *rand.Rand, n int) canary {
		secret := fmt.Sprintf(word, 1000*n+r.IntN(1000))
		return canary{text: fmt.Sprintf(format, secret), secret: secret}
	}
}

// byChoice marks what only a policy of the installation masks.
func byChoice(g generator) generator {
	return func(r *rand.Rand, n int) canary {
		c := g(r, n)
		c.byChoice = true
		return c
	}
}

// generators covers the classes of secrets that redaction must detect (security 9.5.2).
var generators = []generator{
	token("gh"+"p_", 36, alnum),
	token("AK"+"IA", 16, upper+"234567"),
	token("glp"+"at-", 20, alnum),
	token("xo"+"xb-211649829269-376302052684-", 24, alnum),
	token("sk_"+"live_", 24, alnum),
	token("AI"+"za", 35, alnum),
	token("np"+"m_", 36, alnum),
	value("aws_secret_access_key = %s", 40, alnum),
	value(`curl -H "Authorization: Bearer %s" https://api.example.com/v1`, 40, alnum),
	value(`api_key = "%s"`, 40, "0123456789abcdef"),
	value("session_token: %s", 43, alnum),
	value("cookie = \"ey"+"JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiAiMTM0MTg1NjA0NiJ9.%s\"", 43, alnum),
	value("postgres://app:%s@db.example.com:5432/billing", 18, alnum),
	value("smtps://robot:%s@mail.example.com:465", 16, alnum),
	value(`SMTP_PASSWORD = "%s"`, 20, alnum),
	value("-----BEGIN RSA PRI"+"VATE KEY-----\nMIIEowIBAAKCAQEA\n%s\n-----END RSA PRI"+"VATE KEY-----", 64, alnum+"+/"),
	value("-----BEGIN OPENSSH PRI"+"VATE KEY-----\n%s\n", 64, alnum), // cut off
	numbered(`password = "%s"`, "Lighthouse%d!"),
	numbered("db_passwd: '%s'", "correct-horse-%d-staple"),
	numbered(`{"user": "svc", "password": "%s"}`, "Gull&%d$wing"),
	byChoice(numbered("contact %s about it", "captain%d@harbour.example")),
	byChoice(numbered("see http://%s/wiki", "crane-%d.corp.internal")),
	byChoice(func(r *rand.Rand, n int) canary {
		secret := fmt.Sprintf("10.%d.%d.%d", 100+n, 10+r.IntN(200), 10+r.IntN(200))
		if n >= 155 {
			secret = fmt.Sprintf("192.168.%d.%d", n, 10+r.IntN(200))
		}
		return canary{text: "server = \"" + secret + "\"", secret: secret}
	}),
	func(r *rand.Rand, _ int) canary {
		password := pick(r, 18, alnum)
		encoded := base64.StdEncoding.EncodeToString([]byte("svc:" + password))
		return canary{text: "Authorization: Basic " + encoded, secret: encoded, random: true}
	},
	// The forms of leaks that were reported (redaction TestReportedLeaks).
	func(r *rand.Rand, _ int) canary { // below twenty letters of folders
		secret := pick(r, 16, upper+"234567")
		return canary{text: "/AbCdefghIjklMnopqrst/AK" + "IA" + secret, secret: secret, inPath: true, random: true}
	},
	func(r *rand.Rand, n int) canary { // without a prefix
		secret := "AA" + pick(r, 33, alnum)
		return canary{text: fmt.Sprintf("bot %d:%s\n[REDACTED:password:0000]", 4_839_574_000+n, secret), secret: secret, random: true, atEnd: true}
	},
	byChoice(func(r *rand.Rand, n int) canary {
		secret := fmt.Sprintf("10.%d.%d.%d", 1+n%99, 10+r.IntN(200), 10+r.IntN(200))
		return canary{text: secret + " [REDACTED:email:0000]", secret: secret, atEnd: true}
	}),
}

// newCanaries makes n, of every class in turn.
func newCanaries(r *rand.Rand, n int) []canary {
	all := make([]canary, n)
	for i := range all {
		all[i] = generators[i%len(generators)](r, i)
	}
	return all
}

// encodings are the forms that text has in requests, mails, histories and tables.
var encodings = map[string]func(string) string{
	"plain": func(s string) string { return s },
	"JSON": func(s string) string {
		text, _ := json.Marshal(s)
		return string(text)
	},
	"JSON in JSON": func(s string) string {
		text, _ := json.Marshal(s)
		again, _ := json.Marshal(string(text))
		return string(again)
	},
	"a URL's query":    url.QueryEscape,
	"a URL's path":     url.PathEscape,
	"hexadecimal":      func(s string) string { return hex.EncodeToString([]byte(s)) },
	"base64":           func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64, offset 1": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("-" + s)) },
	"base64, offset 2": func(s string) string { return base64.URLEncoding.EncodeToString([]byte("--" + s)) },
	"base64 in lines": func(s string) string {
		text := base64.StdEncoding.EncodeToString([]byte(s))
		return text[:len(text)/2] + "\r\n" + text[len(text)/2:]
	},
	"quoted-printable": func(s string) string {
		var out strings.Builder
		w := quotedprintable.NewWriter(&out)
		_, _ = w.Write([]byte(strings.Repeat("long ", 13) + s))
		_ = w.Close()
		return out.String()
	},
}

// forms returns the strings to search for to find the canary in any encoding.
func (c canary) forms() []string {
	forms := []string{c.secret, url.QueryEscape(c.secret), url.PathEscape(c.secret), hex.EncodeToString([]byte(c.secret))}
	inJSON := encodings["JSON"](c.secret)
	forms = append(forms, strings.Trim(inJSON, `"`))
	again := encodings["JSON"](strings.Trim(inJSON, `"`))
	forms = append(forms, strings.Trim(again, `"`))
	for shift := range 3 {
		// The first and the last base64 digit also depend on the neighboring bytes, so
		// only the digits between them identify the secret.
		shifted := []byte(strings.Repeat("\x00", shift) + c.secret)
		first, last := (8*shift+5)/6, 8*len(shifted)/6
		forms = append(forms, base64.RawStdEncoding.EncodeToString(shifted)[first:last], base64.RawURLEncoding.EncodeToString(shifted)[first:last])
	}
	if half := len(c.secret) / 2; c.random {
		forms = append(forms, c.secret[:half], c.secret[half:])
	}
	return forms
}

// A sink holds all bytes of one kind that left the product or that it stored.
type sink struct {
	name string
	body []byte
}

// leaks describes each canary found in the sink. Mail wraps lines, so the text is also
// searched without line breaks.
func (p sink) leaks(planted []canary) []string {
	views := [][]byte{p.body}
	joined := bytes.ReplaceAll(bytes.ReplaceAll(p.body, []byte("=\r\n"), nil), []byte("=\n"), nil)
	joined = bytes.ReplaceAll(joined, []byte("=3D"), []byte("="))
	views = append(views, joined, bytes.ReplaceAll(bytes.ReplaceAll(p.body, []byte("\r"), nil), []byte("\n"), nil))
	var found []string
	for i, c := range planted {
		if form := c.formIn(views); form != "" {
			found = append(found, fmt.Sprintf("canary %d, planted as %q, is found as %q", i, c.text, form))
		}
	}
	return found
}

// formIn returns the form of the canary that one of the views contains, or "".
func (c canary) formIn(views [][]byte) string {
	for _, form := range c.forms() {
		for _, view := range views {
			if bytes.Contains(view, []byte(form)) {
				return form
			}
		}
	}
	return ""
}
