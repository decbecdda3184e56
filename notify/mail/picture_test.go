package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// The pictures in the documentation show a mail of each outcome, wide and at 400 pixels, in
// light and dark, and README.md a wide one. Each names the digest of the page that Chromium
// rendered.
func TestPicturesShowTheGoldenMails(t *testing.T) {
	t.Parallel()
	for picture, tc := range map[string]struct {
		golden string
		report review.Report
		take   func(t *testing.T, html string) image.Image
	}{
		"mail.png":              {"findings", findingsReport(), wide},
		"mail/findings.png":     {"findings", findingsReport(), allViews},
		"mail/partial.png":      {"partial", partialReport(), allViews},
		"mail/clean.png":        {"clean", cleanReport(), allViews},
		"mail/not_reviewed.png": {"not_reviewed", notReviewedReport(), allViews},
	} {
		t.Run(picture, func(t *testing.T) {
			t.Parallel()
			_, _, html := parts(t, render(t, tc.report))
			html = strings.ReplaceAll(html, "\r\n", "\n") // as in the file
			source := fmt.Sprintf("Source\x00notify/mail/testdata/%s.html sha256:%x", tc.golden, sha256.Sum256([]byte(html)))
			path := filepath.Join("../../docs", picture)
			if *update {
				testkit.NoError(t, os.WriteFile(path, describe(t, tc.take(t, html), source), 0o644))
			}
			data, err := os.ReadFile(path)
			testkit.NoError(t, err)
			if !bytes.Contains(data, []byte("tEXt"+source)) {
				t.Errorf("%s is not the picture of the current mail: run go test ./notify/mail -update, which needs Chromium, and look at it", path)
			}
		})
	}
}

func wide(t *testing.T, html string) image.Image { return screenshot(t, html, "1", 680) }

// allViews returns the page in light above dark, wide beside narrow.
func allViews(t *testing.T, html string) image.Image {
	t.Helper()
	var views []*image.RGBA
	for _, scheme := range []string{"1", "0"} { // light and dark
		var pair []image.Image
		for _, width := range []int{680, 400} {
			pair = append(pair, screenshot(t, html, scheme, width))
		}
		height := max(pair[0].Bounds().Dy(), pair[1].Bounds().Dy())
		both := image.NewRGBA(image.Rect(0, 0, 680+400, height))
		for x, view := range []image.Image{0: pair[0], 1: pair[1]} {
			area := image.Rect(680*x, 0, 680+400*x, height)
			draw.Draw(both, area, image.NewUniform(view.At(0, 0)), image.Point{}, draw.Src)
			draw.Draw(both, area, view, image.Point{}, draw.Src)
		}
		views = append(views, both)
	}
	light, dark := views[0], views[1]
	all := image.NewRGBA(image.Rect(0, 0, 680+400, light.Rect.Dy()+dark.Rect.Dy()))
	draw.Draw(all, light.Rect, light, image.Point{}, draw.Src)
	draw.Draw(all, dark.Rect.Add(image.Pt(0, light.Rect.Dy())), dark, image.Point{}, draw.Src)
	return all
}

// screenshot returns the page in a color scheme (0 is dark) and width, without the empty
// lines below the mail. Chromium's window has a least width, so the page is in a frame.
func screenshot(t *testing.T, html, scheme string, width int) image.Image {
	t.Helper()
	dir := t.TempDir()
	page, shot := filepath.Join(dir, "mail.html"), filepath.Join(dir, "mail.png")
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, "frame.html"), []byte(html), 0o600))
	testkit.NoError(t, os.WriteFile(page, fmt.Appendf(nil, `<body style="margin:0"><iframe src="frame.html" style="border:0;width:%dpx;height:3000px"></iframe>`, width), 0o600))
	cmd := exec.CommandContext(t.Context(), "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--blink-settings=preferredColorScheme="+scheme,
		"--user-data-dir="+dir, "--window-size=700,3000", "--screenshot="+shot, "file://"+page)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("chromium (Debian package chromium): %v\n%s", err, out)
	}
	f, err := os.Open(shot)
	testkit.NoError(t, err)
	defer func() { _ = f.Close() }()
	whole, err := png.Decode(f)
	testkit.NoError(t, err)
	bottom, background := whole.Bounds().Max.Y, whole.At(width/2, whole.Bounds().Max.Y-1)
	for bottom > 0 && whole.At(width/2, bottom-1) == background {
		bottom--
	}
	cut := image.NewRGBA(image.Rect(0, 0, width, bottom+16)) // 16 as above the mail
	draw.Draw(cut, cut.Rect, whole, image.Point{}, draw.Src)
	return cut
}

// describe encodes a picture with a text chunk (PNG 11.3.4.3) behind its header.
func describe(t *testing.T, picture image.Image, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	testkit.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, picture))
	const header = 8 + 25 // signature and IHDR
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	chunk = append(chunk, "tEXt"+text...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	return bytes.Join([][]byte{out.Bytes()[:header], chunk, out.Bytes()[header:]}, nil)
}
