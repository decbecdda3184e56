package llm

import (
	"math/rand/v2"
	"strings"
	"testing"
)

const anchorDiff = `@@ -8,6 +8,7 @@ func open()
 	f, err := os.Open(name)
 	if err != nil {
-		return nil, errors.New("old and gone")
+		return nil, fmt.Errorf("open: %w", err)
 	}
+	defer f.Close()
 	return f, nil
 }
@@ -40,5 +41,7 @@ func closeAll()
 	for _, f := range files {
 		if err != nil {
+
+			log.Print( "closing  failed",err )
 			return f, nil
 		}
+		return f, nil
 	}
`

func TestAnchor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		quote      string
		hint       float64
		start, end int
	}{
		"verbatim line":                         {"	defer f.Close()", 12, 12, 12},
		"no hint":                               {"	defer f.Close()", 0, 12, 12},
		"several lines":                         {"	}\n	defer f.Close()\n	return f, nil", 0, 11, 13},
		"blank line left out":                   {"		if err != nil {\n			log.Print( \"closing  failed\",err )", 0, 42, 44},
		"removed line between is skipped":       {"	if err != nil {\n		return nil, fmt.Errorf(\"open: %w\", err)", 0, 9, 10},
		"other blanks":                          {"log.Print( \"closing failed\",err )", 0, 44, 44},
		"part of a line":                        {"fmt.Errorf(\"open: %w\", err)", 0, 10, 10},
		"copied with number and mark":           {"    12 + 	defer f.Close()", 0, 12, 12},
		"copied with numbers of context":        {"     8   	f, err := os.Open(name)\n     9   	if err != nil {", 0, 8, 9},
		"duplicate: hinted line":                {"if err != nil {", 42, 42, 42},
		"duplicate: exact before other blanks":  {"	if err != nil {", 1, 9, 9},
		"duplicate: added before unchanged":     {"return f, nil", 14, 47, 47},
		"duplicate: added without a hint":       {"return f, nil", 0, 47, 47},
		"removed line is about the file":        {"		return nil, errors.New(\"old and gone\")", 10, 0, 0},
		"removed and kept lines mixed":          {"	if err != nil {\n		return nil, errors.New(\"old and gone\")", 9, 0, 0},
		"code that is not there":                {"	defer f.Sync()", 12, 0, 0},
		"quote over two hunks":                  {"}\n	for _, f := range files {", 14, 0, 0},
		"no quote":                              {"", 12, 0, 0},
		"bracket only":                          {"	}", 11, 0, 0},
		"too short a part":                      {"err", 9, 0, 0},
		"huge hint":                             {"	defer f.Close()", 1e300, 12, 12},
		"duplicate: huge hint takes added line": {"return f, nil", 1e300, 47, 47},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f file
			if err := f.parse(anchorDiff); err != nil {
				t.Fatal(err)
			}
			got := anchor(f.hunks, test.quote, test.hint)
			if got.start != test.start || got.end != test.end {
				t.Errorf("got lines %d to %d, want %d to %d", got.start, got.end, test.start, test.end)
			}
		})
	}
}

func TestAnchorQuotesTheChangeNotTheModel(t *testing.T) {
	t.Parallel()
	var f file
	if err := f.parse(anchorDiff); err != nil {
		t.Fatal(err)
	}
	for quote, want := range map[string]string{
		"    12 + defer   f.Close()":             "	defer f.Close()",
		`return nil, errors.New("old and gone")`: `		return nil, errors.New("old and gone")`,
		"made_up()":                              "",
	} {
		if got := anchor(f.hunks, quote, 0).quote; got != want {
			t.Errorf("quote %q: got %q, want %q", quote, got, want)
		}
	}
}

// A reader sees the lines of the new content around a finding.
func TestAnchorHasTheLinesAround(t *testing.T) {
	t.Parallel()
	var f file
	if err := f.parse(anchorDiff); err != nil {
		t.Fatal(err)
	}
	got := anchor(f.hunks, "	defer f.Close()", 12)
	before := "	if err != nil {\n		return nil, fmt.Errorf(\"open: %w\", err)\n	}"
	if got.before != before || got.after != "	return f, nil\n}" {
		t.Errorf("before %q, after %q", got.before, got.after)
	}
	if got := anchor(f.hunks, "made_up()", 1); got.before != "" || got.after != "" {
		t.Errorf("a quote that is nowhere has lines around it: %+v", got)
	}
}

// A line number is never outside of the shown hunks.
func TestAnchorStaysInsideTheHunks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		f := randomFile(rnd, "//depot/a.c")
		numbers := map[int]bool{}
		var texts []string
		for _, h := range f.hunks {
			for _, l := range h.lines {
				numbers[l.number] = true
				texts = append(texts, l.text, l.render())
			}
		}
		texts = append(texts, "word", "nowhere to be found")
		for range 20 {
			var quote []string
			for range 1 + rnd.IntN(3) {
				quote = append(quote, texts[rnd.IntN(len(texts))])
			}
			at := anchor(f.hunks, strings.Join(quote, "\n"), float64(rnd.IntN(400)-50))
			whole := at.start == 0 && at.end == 0
			if !whole && (!numbers[at.start] || !numbers[at.end] || at.start > at.end || at.start == 0) {
				t.Fatalf("seed %d: lines %d to %d are not in the file's hunks", seed, at.start, at.end)
			}
		}
	}
}
