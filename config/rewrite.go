package config

import "github.com/criticizer/criticizer/secret"

func (r Rewrite) check(p *problems) {
	r.Run.check(p)
	r.Batch.check(p)
	r.Route.check(p)
	p.positive("rewrite.timeout", int64(r.Timeout))
	p.positive("rewrite.max_answer_tokens", int64(r.MaxAnswerTokens))
	p.add(r.OpenAI.APIKeyOld.IsSet() && !r.OpenAI.APIKey.IsSet(), "CRITICIZER_REWRITE_OPENAI_API_KEY_OLD", "is set without a key that replaces it",
		"set CRITICIZER_REWRITE_OPENAI_API_KEY, or unset both")
	checkRewriteURL(p, "rewrite.openai.base_url", r.OpenAI.BaseURL, r.OpenAI.APIKey)
	checkRewriteURL(p, "rewrite.google.base_url", r.Google.BaseURL, r.Google.APIKey)
	checkRewriteURL(p, "rewrite.other.base_url", r.Other.BaseURL, r.Other.APIKey)
}

// checkRewriteURL: a key must not cross a network in clear (security 9.3). A
// provider without a key is no problem as long as no job names it.
func checkRewriteURL(p *problems, field, base string, key secret.Value) {
	if base == "" {
		return
	}
	u := p.url(field, base)
	p.add(u != nil && u.Scheme == "http" && !loopback(u.Hostname()) && key.IsSet(), field, "would send its key in clear to another host", "use https, or unset the key")
}
