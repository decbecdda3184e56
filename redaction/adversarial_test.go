package redaction

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// adversarial returns texts of about size bytes that are made to be slow, by
// what is in them.
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
		// What begins anew within itself, and ends nowhere.
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
	}
	for name, text := range corpusBombs(tb) {
		cases[name] = text[:min(len(text), size)]
	}
	return cases
}

// BenchmarkAdversarial measures the seconds: a text of five megabytes should
// take less than one of one thread, whatever is in it.
func BenchmarkAdversarial(b *testing.B) {
	p := newTestPipeline(b, Config{Emails: true, InternalIPs: true})
	cases := adversarial(b, 5<<20)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(cases[name])))
			took := threadTime(func() {
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

func manySecrets(blob string, size int) string {
	var b strings.Builder
	for at := 0; at+32 <= len(blob) && b.Len() < size; at += 32 {
		b.WriteString(`api_token = "` + blob[at:at+32] + "\"\n")
	}
	return b.String()
}

// corpusBombs are inputs that were slow in other detectors, if the shared
// corpus is there.
func corpusBombs(tb testing.TB) map[string]string {
	tb.Helper()
	names, err := filepath.Glob("../../shared/corpus/adv_*.jsonl.gz")
	if err != nil || len(names) == 0 {
		tb.Log("SKIPPED: the adversarial inputs of the shared corpus are not there; the synthetic ones run")
		return nil
	}
	out := map[string]string{}
	for _, name := range names {
		out[filepath.Base(name)] = readBomb(tb, name)
	}
	return out
}

func readBomb(tb testing.TB, name string) string {
	tb.Helper()
	file, err := os.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	line, err := bufio.NewReaderSize(unzipped, 1<<20).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		tb.Fatal(err)
	}
	var sample struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(line, &sample); err != nil {
		tb.Fatal(err)
	}
	return sample.Text
}
