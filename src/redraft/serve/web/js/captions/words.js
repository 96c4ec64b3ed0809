// The words of the viewers' page in the language of the browser, since its readers may not read English.

/** A line of tags, then a line for each text: the English one, and its translations in this order. */
const TABLE = `
en|de|fr|es|it|pt|nl|sv|pl|uk|ru|tr|ja|ko|zh|zh-Hant
Not connected|Nicht verbunden|Non connecté|Sin conexión|Non connesso|Sem conexão|Niet verbonden|Inte ansluten|Brak połączenia|Немає з’єднання|Нет соединения|Bağlı değil|未接続|연결되지 않음|未连接|未連線
Live|Live|En direct|En directo|In diretta|Ao vivo|Live|Direkt|Na żywo|Наживо|Прямой эфир|Canlı|ライブ|실시간|直播中|直播中
Reconnecting|Neu verbinden|Reconnexion|Reconectando|Riconnessione|Reconectando|Opnieuw verbinden|Återansluter|Ponowne łączenie|Відновлення зв’язку|Переподключение|Yeniden bağlanıyor|再接続中|다시 연결 중|正在重新连接|正在重新連線
Waiting|Warten|En attente|En espera|In attesa|Aguardando|Wachten|Väntar|Oczekiwanie|Очікування|Ожидание|Bekleniyor|待機中|대기 중|等待中|等待中
Not started|Noch nicht begonnen|Pas encore commencé|Aún no ha empezado|Non ancora iniziato|Ainda não começou|Nog niet begonnen|Har inte börjat|Jeszcze nie rozpoczęto|Ще не розпочато|Ещё не началось|Başlamadı|開始前|시작 전|尚未开始|尚未開始
Paused|Pausiert|En pause|En pausa|In pausa|Em pausa|Gepauzeerd|Pausad|Wstrzymano|Призупинено|Пауза|Duraklatıldı|一時停止|일시 중지|已暂停|已暫停
Ended|Beendet|Terminé|Terminado|Terminato|Encerrado|Afgelopen|Slut|Zakończono|Завершено|Завершено|Bitti|終了|종료됨|已结束|已結束
Reconnecting…|Die Verbindung wird wiederhergestellt…|Reconnexion en cours…|Reconectando…|Riconnessione in corso…|Reconectando…|Opnieuw verbinden…|Återansluter…|Ponowne łączenie…|З’єднання відновлюється…|Соединение восстанавливается…|Yeniden bağlanıyor…|再接続しています…|다시 연결하는 중입니다…|正在重新连接…|正在重新連線…
Waiting for the session to start…|Warten auf den Beginn der Sitzung…|En attente du début de la session…|Esperando a que empiece la sesión…|In attesa dell’inizio della sessione…|Aguardando o início da sessão…|Wachten tot de sessie begint…|Väntar på att sessionen ska börja…|Oczekiwanie na początek sesji…|Очікування початку сеансу…|Ожидание начала сеанса…|Oturumun başlaması bekleniyor…|セッションの開始を待っています…|세션이 시작되기를 기다리는 중입니다…|正在等待会话开始…|正在等待工作階段開始…
Waiting for the talk to start…|Warten auf den Beginn des Vortrags…|En attente du début de l’exposé…|Esperando a que empiece la charla…|In attesa dell’inizio dell’intervento…|Aguardando o início da palestra…|Wachten tot de lezing begint…|Väntar på att föredraget ska börja…|Oczekiwanie na początek wystąpienia…|Очікування початку доповіді…|Ожидание начала доклада…|Konuşmanın başlaması bekleniyor…|講演の開始を待っています…|강연이 시작되기를 기다리는 중입니다…|正在等待演讲开始…|正在等待演講開始…
Waiting for the speaker to reconnect…|Warten, bis der Vortragende wieder verbunden ist…|En attente de la reconnexion de l’orateur…|Esperando a que el orador vuelva a conectarse…|In attesa che l’oratore si riconnetta…|Aguardando a reconexão do orador…|Wachten tot de spreker weer verbonden is…|Väntar på att talaren ska återansluta…|Oczekiwanie na ponowne połączenie mówcy…|Очікування повторного з’єднання доповідача…|Ожидание переподключения докладчика…|Konuşmacının yeniden bağlanması bekleniyor…|講演者の再接続を待っています…|연사가 다시 연결되기를 기다리는 중입니다…|正在等待演讲者重新连接…|正在等待講者重新連線…
Captions are paused.|Die Untertitel sind angehalten.|Les sous-titres sont en pause.|Los subtítulos están en pausa.|I sottotitoli sono in pausa.|As legendas estão em pausa.|De ondertiteling is gepauzeerd.|Textningen är pausad.|Napisy są wstrzymane.|Субтитри призупинено.|Субтитры приостановлены.|Altyazılar duraklatıldı.|字幕は一時停止中です。|자막이 일시 중지되었습니다.|字幕已暂停。|字幕已暫停。
The talk is over. Waiting for the next one in this room…|Der Vortrag ist zu Ende. Warten auf den nächsten in diesem Raum…|L’exposé est terminé. En attente du suivant dans cette salle…|La charla ha terminado. Esperando la siguiente en esta sala…|L’intervento è finito. In attesa del prossimo in questa sala…|A palestra terminou. Aguardando a próxima nesta sala…|De lezing is afgelopen. Wachten op de volgende in deze zaal…|Föredraget är slut. Väntar på nästa i det här rummet…|Wystąpienie się skończyło. Oczekiwanie na następne w tej sali…|Доповідь завершено. Очікування наступної в цій залі…|Доклад окончен. Ожидание следующего в этом зале…|Konuşma bitti. Bu odadaki bir sonraki bekleniyor…|講演は終了しました。この部屋の次の講演を待っています…|강연이 끝났습니다. 이 방의 다음 강연을 기다리는 중입니다…|演讲已结束。正在等待此房间的下一场…|演講已結束。正在等待此房間的下一場…
The talk is over.|Der Vortrag ist zu Ende.|L’exposé est terminé.|La charla ha terminado.|La presentazione è finita.|A palestra terminou.|De lezing is afgelopen.|Föredraget är slut.|Wystąpienie się skończyło.|Доповідь завершено.|Доклад окончен.|Konuşma bitti.|講演は終了しました。|강연이 끝났습니다.|演讲已结束。|演講已結束。
Save the text|Text speichern|Enregistrer le texte|Guardar el texto|Salva il testo|Salvar o texto|Tekst opslaan|Spara texten|Zapisz tekst|Зберегти текст|Сохранить текст|Metni kaydet|テキストを保存|텍스트 저장|保存文本|儲存文字
All places for viewers are taken. This page continues when one is free.|Alle Plätze für Zuschauer sind belegt. Diese Seite macht weiter, sobald einer frei ist.|Toutes les places sont prises. Cette page continuera dès qu’une place se libère.|Todas las plazas están ocupadas. Esta página continuará cuando haya una libre.|Tutti i posti sono occupati. Questa pagina continuerà appena se ne libera uno.|Todos os lugares estão ocupados. Esta página continua quando houver um livre.|Alle plaatsen zijn bezet. Deze pagina gaat verder zodra er een vrij is.|Alla platser är upptagna. Sidan fortsätter när en plats blir ledig.|Wszystkie miejsca są zajęte. Ta strona ruszy, gdy zwolni się miejsce.|Усі місця зайняті. Сторінка продовжить роботу, щойно звільниться місце.|Все места заняты. Страница продолжит работу, когда освободится место.|Tüm yerler dolu. Bir yer boşaldığında bu sayfa devam eder.|満席です。空きができると、このページは自動的に続きます。|자리가 모두 찼습니다. 자리가 나면 이 페이지가 이어집니다.|观看名额已满。有空位时，本页会自动继续。|觀看名額已滿。有空位時，本頁會自動繼續。
This browser cannot keep the screen on here.|Dieser Browser kann den Bildschirm hier nicht eingeschaltet lassen.|Ce navigateur ne peut pas garder l’écran allumé ici.|Este navegador no puede mantener la pantalla encendida aquí.|Qui questo browser non può tenere acceso lo schermo.|Este navegador não consegue manter a tela ligada aqui.|Deze browser kan het scherm hier niet aan laten.|Webbläsaren kan inte hålla skärmen tänd här.|Ta przeglądarka nie może tu utrzymać włączonego ekranu.|Цей браузер не може тут утримувати екран увімкненим.|Этот браузер не может здесь оставлять экран включённым.|Bu tarayıcı burada ekranı açık tutamıyor.|このブラウザーでは、ここで画面を点灯したままにできません。|이 브라우저는 여기서 화면을 켜 둘 수 없습니다.|此浏览器在这里无法让屏幕保持常亮。|此瀏覽器在這裡無法讓螢幕保持開啟。
This room does not exist.|Diesen Raum gibt es nicht.|Cette salle n’existe pas.|Esta sala no existe.|Questa sala non esiste.|Esta sala não existe.|Deze zaal bestaat niet.|Rummet finns inte.|Taka sala nie istnieje.|Такої зали немає.|Такого зала нет.|Böyle bir oda yok.|この部屋はありません。|이 방은 존재하지 않습니다.|此房间不存在。|此房間不存在。
Side by side|Nebeneinander|Côte à côte|En paralelo|Affiancati|Lado a lado|Naast elkaar|Sida vid sida|Obok siebie|Поруч|Рядом|Yan yana|並べて表示|나란히|并排显示|並排顯示
Original|Original|Original|Original|Originale|Original|Origineel|Original|Oryginał|Оригінал|Оригинал|Özgün|原文|원문|原文|原文
Jump to newest|Zum neuesten|Aller au plus récent|Ir al más reciente|Vai al più recente|Ir para o mais recente|Naar het nieuwste|Till det senaste|Do najnowszego|До найновішого|К последнему|En yeniye git|最新へ|최신으로 이동|跳到最新|跳到最新
Not translated|Nicht übersetzt|Non traduit|Sin traducir|Non tradotto|Não traduzido|Niet vertaald|Inte översatt|Nie przetłumaczono|Не перекладено|Не переведено|Çevrilmedi|翻訳なし|번역되지 않음|未翻译|未翻譯
Earlier captions|Frühere Untertitel|Sous-titres précédents|Subtítulos anteriores|Sottotitoli precedenti|Legendas anteriores|Eerdere ondertitels|Tidigare texter|Wcześniejsze napisy|Попередні субтитри|Предыдущие субтитры|Önceki altyazılar|以前の字幕|이전 자막|较早的字幕|較早的字幕
Smaller captions|Kleinere Untertitel|Sous-titres plus petits|Subtítulos más pequeños|Sottotitoli più piccoli|Legendas menores|Kleinere ondertitels|Mindre text|Mniejsze napisy|Менші субтитри|Субтитры мельче|Daha küçük altyazı|字幕を小さく|자막 작게|缩小字幕|縮小字幕
Larger captions|Größere Untertitel|Sous-titres plus grands|Subtítulos más grandes|Sottotitoli più grandi|Legendas maiores|Grotere ondertitels|Större text|Większe napisy|Більші субтитри|Субтитры крупнее|Daha büyük altyazı|字幕を大きく|자막 크게|放大字幕|放大字幕
Full screen|Vollbild|Plein écran|Pantalla completa|Schermo intero|Tela cheia|Volledig scherm|Helskärm|Pełny ekran|Повний екран|Во весь экран|Tam ekran|全画面|전체 화면|全屏|全螢幕
QR code|QR-Code|Code QR|Código QR|Codice QR|Código QR|QR-code|QR-kod|Kod QR|QR-код|QR-код|QR kodu|QRコード|QR 코드|二维码|QR 碼
Close|Schließen|Fermer|Cerrar|Chiudi|Fechar|Sluiten|Stäng|Zamknij|Закрити|Закрыть|Kapat|閉じる|닫기|关闭|關閉
Dark|Dunkel|Sombre|Oscuro|Scuro|Escuro|Donker|Mörkt|Ciemny|Темна|Тёмная|Koyu|ダーク|어둡게|深色|深色
Translated by {model}.|Übersetzt von {model}.|Traduit par {model}.|Traducido por {model}.|Tradotto da {model}.|Traduzido por {model}.|Vertaald door {model}.|Översatt av {model}.|Tłumaczenie: {model}.|Переклад: {model}.|Перевод: {model}.|Çeviri: {model}.|翻訳：{model}|번역: {model}|翻译：{model}|翻譯：{model}
Translated by {model}, a small demo model that makes mistakes.|Übersetzt von {model}, einem kleinen Vorführmodell, das Fehler macht.|Traduit par {model}, un petit modèle de démonstration qui fait des erreurs.|Traducido por {model}, un pequeño modelo de demostración que comete errores.|Tradotto da {model}, un piccolo modello dimostrativo che commette errori.|Traduzido por {model}, um pequeno modelo de demonstração que comete erros.|Vertaald door {model}, een klein demonstratiemodel dat fouten maakt.|Översatt av {model}, en liten demomodell som gör fel.|Tłumaczenie: {model}, mały model demonstracyjny, który popełnia błędy.|Переклад: {model}, мала демонстраційна модель, яка помиляється.|Перевод: {model}, небольшая демонстрационная модель, которая ошибается.|Çeviri: {model}, hata yapan küçük bir tanıtım modeli.|翻訳：{model}（間違えることのある小型のデモ用モデル）|번역: {model}, 실수할 수 있는 작은 데모 모델입니다.|翻译：{model}，会出错的小型演示模型。|翻譯：{model}，會出錯的小型展示模型。
`;

const [tags, ...rows] = TABLE.trim()
  .split("\n")
  .map((line) => line.split("|"));
/** Tag -> the texts in this language, in the order of the English ones. */
export const texts = new Map(tags.map((tag, place) => [tag, rows.map((row) => row[place])]));
let words = new Map();

/** A text in the language of the page. */
export const t = (english) => words.get(english) ?? english;

/**
 * Write the page in the first of these languages that the table has, and what it already says with `data-word`.
 *
 * @param {readonly string[]} wanted tags
 */
export function speak(wanted) {
  const tag = wanted.map(known).find(Boolean) ?? "en";
  words = new Map(rows.map(([english], place) => [english, texts.get(tag)[place]]));
  document.documentElement.lang = tag;
  for (const each of document.querySelectorAll("[data-word]")) each.textContent = t(each.textContent);
}

/** The tag of the table for the language of a browser; undefined if there is none. */
function known(tag) {
  const [language] = tag.toLowerCase().split("-");
  const name = language === "zh" && /-(hant|tw|hk|mo)/i.test(tag) ? "zh-Hant" : language;
  return texts.has(name) ? name : undefined;
}
