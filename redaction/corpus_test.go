package redaction

import (
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// corpusFiles returns the files of the outside corpus that match pattern. The
// corpus is not a part of the repository: make corpus CORPUS=DIR names it.
func corpusFiles(tb testing.TB, pattern string) []string {
	tb.Helper()
	dir := os.Getenv("CRITICIZER_CORPUS_DIR")
	if dir == "" {
		tb.Skip("corpus: CRITICIZER_CORPUS_DIR is not set, run make corpus CORPUS=DIR")
	}
	names, err := filepath.Glob(filepath.Join(dir, "corpus", pattern))
	if err != nil || len(names) == 0 {
		tb.Fatalf("%s has no corpus/%s (%v)", dir, pattern, err)
	}
	return names
}

// A sample is a line of the corpus.
type sample struct {
	Rule    string   `json:"rule"`
	Text    string   `json:"text"`
	Secret  string   `json:"secret"`
	Secrets []string `json:"secrets"`
	All     any      `json:"all"`
	Label   string   `json:"label"`
	Kind    string   `json:"kind"`
	Scope   string   `json:"scope"`
}

// A score counts the samples of a class.
type score struct{ positives, full, negatives, hit int }

func (s score) recall() float64 { return float64(s.full) / float64(max(1, s.positives)) }
func (s score) hits() float64   { return float64(s.hit) / float64(max(1, s.negatives)) }

// The least recall and the largest share of hit negatives, by source. Of
// traps-pos, every secret of wholeClasses has to be masked.
var (
	recallFloors = map[string]float64{"creddata": 0.95, "traps-pos": 0.999, "gitleaks": 0.996, "betterleaks": 0.986, "veles": 0.929, "kingfisher": 0.81, "noseyparker": 0.84, "detect-secrets": 0.81, "credsweeper-tests": 0.80}
	hitCeilings  = map[string]float64{"creddata": 0.06, "traps-neg": 0}
	wholeClasses = regexp.MustCompile(`^(pem|uri|tok)`)
)

// TestCorpus scores the engine on the outside corpus, as the corpus' own script
// does. Run it with -v for the classes.
func TestCorpus(t *testing.T) {
	p := newTestPipeline(t, Config{})
	for _, name := range corpusFiles(t, "*.jsonl.gz") {
		source := strings.TrimSuffix(filepath.Base(name), ".jsonl.gz")
		if strings.HasPrefix(source, "adv_") || strings.HasPrefix(source, "clean") {
			continue
		}
		t.Run(source, func(t *testing.T) {
			classes := scoreSamples(t, p, unzip(t, name))
			all := score{}
			for _, class := range slices.SortedFunc(maps.Keys(classes), func(a, b string) int {
				return cmp.Or(classes[b].positives+classes[b].negatives-classes[a].positives-classes[a].negatives, cmp.Compare(a, b))
			}) {
				c := classes[class]
				t.Logf("%-36s full %5d of %5d %6.1f %%   negatives hit %4d of %5d %5.1f %%", class, c.full, c.positives, 100*c.recall(), c.hit, c.negatives, 100*c.hits())
				all = score{all.positives + c.positives, all.full + c.full, all.negatives + c.negatives, all.hit + c.hit}
				if source == "traps-pos" && wholeClasses.MatchString(class) && c.full < c.positives {
					t.Errorf("class %s: %d of %d are masked: want all", class, c.full, c.positives)
				}
			}
			t.Logf("%-36s full %5d of %5d %6.1f %%   negatives hit %4d of %5d %5.1f %%", "all", all.full, all.positives, 100*all.recall(), all.hit, all.negatives, 100*all.hits())
			if floor := recallFloors[source]; all.positives > 0 && all.recall() < floor {
				t.Errorf("full recall is %.3f: want at least %.3f", all.recall(), floor)
			}
			if ceiling, ok := hitCeilings[source]; ok && all.hits() > ceiling {
				t.Errorf("%.3f of the negatives are hit: want at most %.3f", all.hits(), ceiling)
			}
		})
	}
}

// TestLabelledSamples scores the engine on samples of our own: a secret counts as
// masked if no byte of any of its occurrences is left.
func TestLabelledSamples(t *testing.T) {
	t.Parallel()
	for class, c := range scoreSamples(t, newTestPipeline(t, Config{}), labelledSamples) {
		if c.positives+c.negatives < 3 || c.full < c.positives || c.hit > 0 {
			t.Errorf("class %s: %d of %d secrets are masked, %d of %d negatives hit: want all secrets and no negative", class, c.full, c.positives, c.hit, c.negatives)
		}
	}
}

//go:embed testdata/labelled.jsonl
var labelledSamples []byte

// unzip returns the content of a gzip file.
func unzip(tb testing.TB, name string) []byte {
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
	data, err := io.ReadAll(unzipped)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// scoreSamples returns the score of each class. A class is the rule up to its
// first : or /.
func scoreSamples(t *testing.T, p *Pipeline, data []byte) map[string]score {
	t.Helper()
	classes := map[string]score{}
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var s sample
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		if s.Kind != "identifier" && (s.Label != "negative" || s.Scope != "rule") {
			class, _, _ := strings.Cut(s.Rule, ":")
			class, _, _ = strings.Cut(class, "/")
			classes[class] = scoreSample(p, classes[class], s)
		}
	}
	return classes
}

// scoreSample adds the sample s to c.
func scoreSample(p *Pipeline, c score, s sample) score {
	_, marks, _, err := p.Explain(s.Text, "", false)
	if err != nil {
		marks = []Mark{{End: len(s.Text)}} // blocked: nothing is sent
	}
	if s.Label == "negative" {
		c.negatives++
		if len(marks) > 0 {
			c.hit++
		}
		return c
	}
	masked := make([]bool, len(s.Text)+1)
	for _, m := range marks {
		for i := m.Start; i < m.End; i++ {
			masked[i] = true
		}
	}
	secrets := []string{s.Secret}
	if s.All != nil && s.All != false {
		secrets = s.Secrets
	}
	seen, full := false, true
	for _, secret := range secrets {
		found, covered := covers(s.Text, secret, masked)
		seen, full = seen || found, full && (covered || !found)
	}
	if seen {
		c.positives++
		if full {
			c.full++
		}
	}
	return c
}

var pemLine = regexp.MustCompile(`-{2,}\s*(BEGIN|END)[^-\n]*-{2,}`)

// covers reports whether secret occurs in text, and whether every byte of it
// that counts is masked in every occurrence. Blanks, quotes, separators and the
// BEGIN and END lines of a key do not count.
func covers(text, secret string, masked []bool) (found, covered bool) {
	counts := make([]bool, len(secret))
	any := false
	for i := range len(secret) {
		counts[i] = !strings.ContainsRune(" \t\n\r\"'`,;", rune(secret[i]))
	}
	for _, m := range pemLine.FindAllStringIndex(secret, -1) {
		for i := m[0]; i < m[1]; i++ {
			counts[i] = false
		}
	}
	for _, c := range counts {
		any = any || c
	}
	covered = true
	for at := 0; secret != ""; {
		i := strings.Index(text[at:], secret)
		if i < 0 {
			break
		}
		found = true
		for j := range secret {
			if (counts[j] || !any) && !masked[at+i+j] {
				covered = false
			}
		}
		at += i + len(secret)
	}
	return found, covered
}
