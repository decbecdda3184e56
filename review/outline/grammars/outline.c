// outline lists the definitions, imports and identifiers of a source file. It is
// linked with tree-sitter and one grammar to one WebAssembly module, which runs
// without access to the machine. review/outline is its only caller.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tree_sitter/api.h"

const TSLanguage *LANGUAGE(void);

// The kinds of records. review/outline/outline.go has the same numbers.
enum { FUNCTION = 1, TYPE, VALUE, IMPORT, WRAPPER, SCOPE, IDENTIFIER };

// A record is a definition, an import or an identifier. Rows count from 0.
typedef struct {
  uint32_t kind, first, last, body, name, name_end;
} record;

static record *records;
static uint32_t count, capacity;
static uint8_t *kinds;  // by symbol: a kind, or 0
static uint8_t *bodied; // by symbol: without a body, the node is a reference
static char *input;
static uint32_t limit; // of records

#define EXPORT(name) __attribute__((export_name(#name)))

EXPORT(buffer) char *buffer(uint32_t size) {
  free(input);
  return input = malloc(size + 1);
}

EXPORT(records) record *list(void) { return records; }

// configure reads "symbol kind\n" lines; a * before the kind stands for bodied.
EXPORT(configure) int configure(uint32_t size) {
  const TSLanguage *language = LANGUAGE();
  uint32_t symbols = ts_language_symbol_count(language);
  kinds = calloc(symbols, 1);
  bodied = calloc(symbols, 1);
  input[size] = 0;
  for (char *line = strtok(input, "\n"); line; line = strtok(NULL, "\n")) {
    char *kind = strchr(line, ' ');
    int known = 0, star;
    if (!kind) return -1;
    *kind++ = 0;
    if ((star = *kind == '*')) kind++;
    for (uint32_t i = 0; i < symbols; i++)
      if (!strcmp(ts_language_symbol_name(language, i), line)) {
        kinds[i] = atoi(kind);
        bodied[i] = star;
        known = 1;
      }
    if (!known) return -1;
  }
  return 0;
}

static int add(uint32_t kind, uint32_t first, uint32_t last, uint32_t body, uint32_t name, uint32_t name_end) {
  if (count == limit) return 0;
  if (count == capacity) {
    uint32_t more = capacity ? capacity * 2 : 4096;
    record *grown = realloc(records, more * sizeof(record));
    if (!grown) return 0;
    records = grown;
    capacity = more;
  }
  records[count++] = (record){kind, first, last, body, name, name_end};
  return 1;
}

static int ends_with(const char *s, const char *end) {
  size_t n = strlen(s), m = strlen(end);
  return n >= m && !strcmp(s + n - m, end);
}

static int is_one_of(const char *s, const char *const *list) {
  for (; s && *list; list++)
    if (!strcmp(s, *list)) return 1;
  return 0;
}

// The fields that lead from a definition to its name.
static const char *const to_name[] = {"name", "declarator", "left", "pattern", "property", "field", "method", NULL};

static int is_prefix(const char *type) {
  return strstr(type, "modifier") || strstr(type, "annotation") || strstr(type, "attribute") || strstr(type, "comment") ||
         strstr(type, "parameters") || strstr(type, "binding_pattern_kind");
}

// add_names adds the definition d under each name that the node holds.
static void add_names(TSNode node, int depth, record d) {
  uint32_t n = ts_node_child_count(node);
  int found = 0;
  if (depth > 16) return;
  if (ts_node_named_child_count(node) == 0) {
    add(d.kind, d.first, d.last, d.body, ts_node_start_byte(node), ts_node_end_byte(node));
    return;
  }
  for (uint32_t i = 0; i < n && i < 256 && !(found && d.kind == FUNCTION); i++) {
    TSNode child = ts_node_child(node, i);
    if (ts_node_is_named(child) &&
        (is_one_of(ts_node_field_name_for_child(node, i), to_name) || !strcmp(ts_node_type(child), "variable_declarator"))) {
      found = 1;
      add_names(child, depth + 1, d);
    }
  }
  for (uint32_t i = 0; !found && i < n && i < 64; i++) {
    TSNode child = ts_node_child(node, i);
    if (ts_node_is_named(child) && !is_prefix(ts_node_type(child))) {
      found = 1;
      add_names(child, depth + 1, d);
    }
  }
}

static void add_words(TSNode node) {
  uint32_t at = ts_node_start_byte(node), end = ts_node_end_byte(node), row = ts_node_start_point(node).row;
  while (at < end) {
    uint32_t start = at;
    while (at < end && (input[at] == '_' || (input[at] | 32) >= 'a' && (input[at] | 32) <= 'z' || at > start && input[at] >= '0' && input[at] <= '9')) at++;
    if (at > start) add(IDENTIFIER, row, row, row, start, at);
    else if (input[at++] == '\n') row++;
  }
}

static void add_leaf(TSNode node) {
  const char *type = ts_node_type(node);
  TSPoint start = ts_node_start_point(node);
  if (ends_with(type, "identifier"))
    add(IDENTIFIER, start.row, start.row, start.row, ts_node_start_byte(node), ts_node_end_byte(node));
  else if (!strcmp(type, "preproc_arg"))
    add_words(node);
}

// end_row is the last row that has text of the node.
static uint32_t end_row(TSNode node) {
  TSPoint end = ts_node_end_point(node);
  return end.column == 0 && end.row > ts_node_start_point(node).row ? end.row - 1 : end.row;
}

// A level is what is known of an ancestor and those around it.
typedef struct {
  uint8_t local;     // is in a function
  uint32_t wrapper;  // its first row plus 1 if it is a wrapper, else 0
} level;

static void add_node(TSNode node, uint8_t kind, level parent) {
  TSNode body = ts_node_child_by_field_name(node, "body", 4);
  uint32_t first = parent.wrapper ? parent.wrapper - 1 : ts_node_start_point(node).row;
  record d = {kind, first, end_row(node), end_row(node)};
  if (!ts_node_is_null(body)) d.body = ts_node_start_point(body).row;
  else if (bodied[ts_node_symbol(node)]) return;
  if (kind == IMPORT) add(kind, d.first, d.last, d.body, ts_node_start_byte(node), ts_node_end_byte(node));
  else if (kind == SCOPE && !parent.local) add(FUNCTION, d.first, d.last, d.body, 0, 0);
  else if (kind != SCOPE && (kind != VALUE || !parent.local)) add_names(node, 0, d);
}

// outline parses the text in the buffer and returns the number of records, or -1 if it
// cannot be parsed in the given time.
EXPORT(outline) int outline(uint32_t size, uint32_t max_records, uint32_t microseconds) {
  TSParser *parser = ts_parser_new();
  uint32_t depth = 0, room = 1024;
  level *levels = calloc(room, sizeof(level));
  TSTree *tree;
  count = 0;
  limit = max_records;
  if (!levels || !parser || !ts_parser_set_language(parser, LANGUAGE())) return -1;
  ts_parser_set_timeout_micros(parser, microseconds);
  tree = ts_parser_parse_string(parser, NULL, input, size);
  ts_parser_delete(parser);
  if (!tree) return -1;
  TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
  for (;;) {
    TSNode node = ts_tree_cursor_current_node(&cursor);
    uint8_t kind = ts_node_is_named(node) && ts_node_symbol(node) < 0xfffe ? kinds[ts_node_symbol(node)] : 0;
    if (kind && kind != WRAPPER) add_node(node, kind, levels[depth]);
    if (ts_tree_cursor_goto_first_child(&cursor)) {
      if (depth + 2 > room) {
        level *grown = realloc(levels, (room *= 2) * sizeof(level));
        if (!grown) return -1;
        levels = grown;
      }
      levels[depth + 1] = (level){levels[depth].local || kind == FUNCTION || kind == SCOPE,
                                  kind == WRAPPER ? ts_node_start_point(node).row + 1 : 0};
      depth++;
      continue;
    }
    if (ts_node_is_named(node)) add_leaf(node);
    while (!ts_tree_cursor_goto_next_sibling(&cursor)) {
      if (!ts_tree_cursor_goto_parent(&cursor)) {
        ts_tree_cursor_delete(&cursor);
        ts_tree_delete(tree);
        free(levels);
        return count;
      }
      depth--;
    }
  }
}
