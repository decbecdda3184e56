-- name: Figures :many
select name::text as name, labels::jsonb as labels, figure::double precision as figure from criticizer.figures;
