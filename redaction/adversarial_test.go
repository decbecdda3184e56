package redaction

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The work is linear in the text, whatever the text: five megabytes made to be
// slow take less than a second each.
func TestAdversarialInputs(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: five megabytes per case take some seconds in all")
	}
	const size = 5 << 20
	random := make([]byte, size*3/4)
	chacha := rand.NewChaCha8([32]byte{1})
	_, _ = chacha.Read(random)
	blob := base64.StdEncoding.EncodeToString(random)
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	cases := map[string]string{
		"BEGIN lines":          fill("-----BEGIN RSA PRIVATE KEY-----\n"),
		"END lines":            fill("-----END RSA PRIVATE KEY-----\n"),
		"keys on one line":     fill("key_"),
		"blanks after a name":  "password" + fill(" "),
		"one line of code":     fill("function a(b,c){return b+c*2};var d=[1,2,3].map(function(e){return e*e});"),
		"base64":               blob[:4600<<10],
		"base64 in lines":      "-----BEGIN PRIVATE KEY-----\n" + lines(blob, 64),
		"many secrets":         manySecrets(blob),
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
		"commands":             fill("curl -u "),
		"lines of a diff":      fill("-a\n+b\n"),
		"hunks":                fill("@@ -1 +1 @@\n"),
		"one value repeated":   "password = \"" + blob[:300] + "\"\n" + fill(blob[:299]+" "),
	}
	for name, text := range corpusBombs(t) {
		cases[name] = text
	}
	p := newTestPipeline(t, Config{Emails: true, InternalIPs: true})
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			took := threadTime(func() {
				if _, err := p.String(text); err != nil {
					t.Fatal(err)
				}
			})
			if took > limit() {
				t.Errorf("%d bytes took %s: want less than %s", len(text), took, limit())
			} else {
				t.Logf("%d bytes took %s", len(text), took)
			}
		})
	}
}

// limit is what five megabytes may take of one thread: a second on an idle
// machine, some more on a busy one or under the race detector. Work that is not
// linear takes minutes.
func limit() time.Duration {
	if raceEnabled || os.Getenv("CI") != "" {
		return 30 * time.Second
	}
	return 3 * time.Second
}

func lines(s string, width int) string {
	var b strings.Builder
	for at := 0; at+width <= len(s); at += width {
		b.WriteString(s[at:at+width] + "\n")
	}
	return b.String()
}

func manySecrets(blob string) string {
	var b strings.Builder
	for at := 0; at+32 <= len(blob) && b.Len() < 5<<20; at += 32 {
		b.WriteString(`api_token = "` + blob[at:at+32] + "\"\n")
	}
	return b.String()
}

// corpusBombs are inputs that were slow in other detectors, if the shared
// corpus is there.
func corpusBombs(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../shared/corpus/adv_*.jsonl.gz")
	if err != nil || len(names) == 0 {
		t.Log("SKIPPED: the adversarial inputs of the shared corpus are not there; the synthetic ones run")
		return nil
	}
	out := map[string]string{}
	for _, name := range names {
		out[filepath.Base(name)] = readBomb(t, name)
	}
	return out
}

func readBomb(t *testing.T, name string) string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReaderSize(unzipped, 1<<20).ReadBytes('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	var sample struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(line, &sample); err != nil {
		t.Fatal(err)
	}
	return sample.Text
}
