package p4

import (
	"log/slog"
	"testing"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
)

// The charset of comments is detected, and marked as a guess.
func TestCharsetIsDetected(t *testing.T) {
	t.Parallel()
	for comment, charset := range map[string]string{
		"エラー処理": "shift_jis", "오류 처리": "euc-kr", "错误处理": "gb18030", "讀取設定": "big5", "проверка": "windows-1251",
		"für alle": "windows-1252", "déjà vu": "windows-1252", "Größe der Tür": "windows-1252", "© 2020 Müller": "windows-1252", "it’s": "windows-1252",
		"このファイルは設定を読み込みます。エラーがあれば終了する":                                 "shift_jis",
		"このファイルは設定を読み込みます。エラーがあれば終了する ":                                "euc-jp",
		"이 파일은 설정을 읽고 오류가 있으면 종료합니다":                                   "euc-kr",
		"这个文件读取配置,如果有错误就退出程序":                                          "gb18030",
		"這個檔案讀取設定,如果有錯誤就結束程式":                                          "big5",
		"Этот файл читает настройки и завершает программу при ошибке":  "windows-1251",
		"Этот файл читает настройки и завершает программу при ошибке ": "koi8-r",
		"Diese Datei liest die Einstellungen für Müller, déjà vu":      "windows-1252",
	} {
		t.Run(charset+" "+comment, func(t *testing.T) {
			t.Parallel()
			encoding, err := htmlindex.Get(charset)
			testkit.NoError(t, err)
			data, err := encoding.NewEncoder().String("// " + comment + "\nint a;\n")
			testkit.NoError(t, err)
			f := newFake(t)
			f.submitted(12, rev{path: "//depot/f.c", rev: 2, data: data})
			f.has(rev{path: "//depot/f.c", rev: 1, data: "int a;\n"})
			change, err := f.fetch(12)
			testkit.NoError(t, err)
			if file := change.Files[0]; file.Charset != charset || file.Diff != "@@ -1,1 +1,2 @@\n+// "+comment+"\n int a;\n" {
				t.Errorf("charset %q, diff %q, skipped %q", file.Charset, file.Diff, file.Skipped)
			}
		})
	}
}

// Text whose charset is not detected has the configured one.
func TestCharsetFallback(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.submitted(12, rev{path: "//depot/f.c", rev: 1, action: "add", data: "\xb4\xed\n"})
	if change, err := f.fetch(12); err != nil || change.Files[0].Charset != defaultCharset {
		t.Errorf("without a setting: %+v, %v", change.Files, err)
	}
	for fallback, want := range map[string]string{"windows-1252": "´í", "gb18030": "错", "euc-kr": "댄"} {
		change, err := f.fetch(12, func(c *Config) { c.CharsetFallback = fallback })
		if err != nil || change.Files[0].Diff != "@@ -0,0 +1,1 @@\n+"+want+"\n" || change.Files[0].Charset != "" {
			t.Errorf("fallback %q: %+v, %v", fallback, change.Files, err)
		}
	}
	cfg := config.Default[Config]()
	cfg.Command, cfg.Port, cfg.User, cfg.StateDir, cfg.Allowed, cfg.CharsetFallback = "true", "p:1", "u", t.TempDir(), []string{"//depot/..."}, "cp999999"
	if _, err := New(slog.New(slog.DiscardHandler), cfg); failure.ClassOf(err) != failure.ConfigInvalid {
		t.Errorf("an unknown charset: %v", err)
	}
}
