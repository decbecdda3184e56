package read

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// readHCL reads the attributes of HCL, with the defaults in their expressions, such as coalesce(var.p, "x").
func readHCL(text string) (doc document) {
	if len(text) > maxSlow || !isShallow(text) {
		return doc
	}
	file, diags := hclsyntax.ParseConfig([]byte(text), "", hcl.InitialPos)
	if file == nil {
		return doc
	}
	w := hclReader{text: text}
	if body, ok := file.Body.(*hclsyntax.Body); ok {
		w.body(body, &Step{})
	}
	slices.SortStableFunc(w.doc.Values, func(a, b Value) int { return cmp.Compare(a.Start, b.Start) })
	if !diags.HasErrors() {
		w.doc.Read = []part{{0, len(text)}}
	}
	return w.doc
}

// isShallow reports whether the parser, which has no bound of its own, recurses only a little.
func isShallow(text string) bool {
	const most = 2000 // operators that recurse without a bracket
	tokens, _ := hclsyntax.LexConfig([]byte(text), "", hcl.InitialPos)
	depth, operators := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			depth = max(0, depth-1)
		case hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenQuestion:
			operators++
		}
		if depth > maxNesting || operators > most {
			return false
		}
	}
	return true
}

type hclReader struct {
	text string
	doc  document
}

func (w *hclReader) body(b *hclsyntax.Body, path *Step) {
	for name, a := range b.Attributes {
		w.expression(a.Expr, &Step{Name: name, Up: path}, judge.Assigned)
	}
	for _, block := range b.Blocks {
		step := &Step{Name: block.Type, Up: path}
		for _, label := range block.Labels {
			step = &Step{Name: label, Up: step}
		}
		if n := len(block.Labels); n > 0 {
			step.label = block.Labels[n-1]
		}
		w.body(block.Body, step)
	}
}

// expression adds the literals of an expression. Those of a call or a condition are defaults.
func (w *hclReader) expression(e hclsyntax.Expression, path *Step, bind judge.Binding) {
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		w.expression(e.Expression, path, bind)
	case *hclsyntax.ConditionalExpr:
		w.expression(e.TrueResult, path, judge.Fallback)
		w.expression(e.FalseResult, path, judge.Fallback)
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "sensitive" || e.Name == "tostring" || e.Name == "jsonencode" || e.Name == "yamlencode" {
			bind = judge.Assigned
		} else if bind == judge.Assigned {
			bind = judge.Fallback
		}
		for _, arg := range e.Args {
			w.expression(arg, path, bind)
		}
	case *hclsyntax.TupleConsExpr:
		for _, x := range e.Exprs {
			w.expression(x, &Step{Up: path}, judge.Item)
		}
	case *hclsyntax.ObjectConsExpr:
		for _, item := range e.Items {
			r := item.KeyExpr.Range()
			w.expression(item.ValueExpr, &Step{Name: strings.Trim(w.text[r.Start.Byte:r.End.Byte], `"`), Up: path}, judge.Assigned)
		}
	case *hclsyntax.BinaryOpExpr:
		w.expression(e.LHS, path, judge.Compared)
		w.expression(e.RHS, path, judge.Compared)
	case *hclsyntax.IndexExpr:
		w.expression(e.Collection, path, bind)
	case *hclsyntax.ForExpr:
		w.expression(e.CollExpr, path, judge.Compared)
		w.expression(e.ValExpr, path, bind)
	case *hclsyntax.TemplateExpr:
		w.template(e, path, bind)
	case *hclsyntax.TemplateWrapExpr:
		w.expression(e.Wrapped, path, judge.Fallback)
	case *hclsyntax.LiteralValueExpr:
		r := e.Range()
		if c := lex.ByteAt(w.text, r.Start.Byte); lex.IsAlnum(c) || c == '-' { // else what does not parse
			w.add(path, r.Start.Byte, r.End.Byte, false, bind)
		}
	}
}

// template adds the text of a template as one value: a text in quotes, or a here document.
func (w *hclReader) template(e *hclsyntax.TemplateExpr, path *Step, bind judge.Binding) {
	r := e.Range()
	start, end := r.Start.Byte, r.End.Byte
	if start >= end || end > len(w.text) {
		return
	}
	if text := w.text[start:end]; text[0] == '"' && len(text) > 1 {
		start, end = start+1, end-1
	} else if strings.HasPrefix(text, "<<") && strings.Contains(text, "\n") {
		start += strings.IndexByte(text, '\n') + 1
		body := strings.TrimRight(w.text[start:end], " \t\r\n")
		end = start + max(0, strings.LastIndexByte(body, '\n'))
	}
	w.add(path, start, end, true, bind)
}

func (w *hclReader) add(path *Step, start, end int, quoted bool, bind judge.Binding) {
	if start >= 0 && end <= len(w.text) {
		w.doc.add(path, start, end, quoted, bind)
	}
}
