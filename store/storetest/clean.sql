-- Deletes the rows that were written since the transaction storetest.first, whatever
-- their triggers and foreign keys say, and sets the sequences back.
do $$
declare
    t regclass;
    s record;
begin
    set local session_replication_role = replica;
    for t in
        select oid from pg_class
        where relkind = 'r' and relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
    loop
        execute format('delete from %s where xmin::text::bigint >= %s', t, current_setting('storetest.first'));
    end loop;
    for s in
        select format('%I.%I', schemaname, sequencename) as name, replace(format('%I.%I', schemaname, sequencename), '_id_seq', '') as of
        from pg_sequences
    loop
        execute format('select setval(%L, coalesce(max(id), 0) + 1, false) from %s', s.name, s.of);
    end loop;
end
$$;
